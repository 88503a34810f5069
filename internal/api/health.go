package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"tandem/internal/fault"
)

var errNotReady = fault.New(fault.Unavailable, "not_ready", "This node cannot read its files.")

// alive says that the process answers.
func (a *api) alive(c echo.Context) error {
	return c.JSON(http.StatusOK, map[string]string{"status": "alive"})
}

// ready says that the files can be read. The peer and the channels have no part
// in it: without them the node still serves.
func (a *api) ready(c echo.Context) error {
	if err := a.Ready(c.Request().Context()); err != nil {
		return a.problem(c.Request().Context(), "GET /readyz", errNotReady.Because(err))
	}
	return c.JSON(http.StatusOK, map[string]string{"status": "ready"})
}
