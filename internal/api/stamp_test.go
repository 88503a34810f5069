package api

import (
	"fmt"
	"testing"
)

// S:16. What crosses is the instant, on a machine of whatever zone.
func TestAStampCrossesAsTheInstantInAnyZone(t *testing.T) {
	inZones(t, func(t *testing.T) {
		n := newNode(t)
		made := n.anna.post("/v1/todos", `{"content": "Milch"}`).wants(201)
		want := fmt.Sprintf("%.0f %.0f", float64(n.now().UnixMilli()), float64(n.now().UnixMilli()))
		equal(t, "made", fmt.Sprintf("%.0f %.0f", n.sent("Milch")["created_at"], n.sent("Milch")["updated_at"]), want)
		row := n.sent("Milch")
		n.wait(-5 * 60e9) // the clock is set back, and the edit is later nonetheless
		n.anna.patch(made.header.Get("Location"), `{"content": "Oat milk"}`).wants(200)
		equal(t, "edited", n.sent("Oat milk")["updated_at"], any(row["updated_at"].(float64)+1))
	})
}
