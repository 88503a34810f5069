package api

import (
	"context"
	"net/url"
	"slices"

	"tandem/internal/push"
	"tandem/internal/sqlite"
	"tandem/internal/when"
)

type deviceBody struct {
	DeviceID     string `json:"device_id"`
	Platform     string `json:"platform"`
	RegisteredAt string `json:"registered_at"`
}

func showDevice(d push.Device) deviceBody {
	return deviceBody{d.DeviceID, d.Platform, when.Format(d.RegisteredAt)}
}

type newDeviceInput struct {
	Keyed
	Body struct {
		Token    string `json:"token" doc:"What the push service calls this installation"`
		Platform string `json:"platform" enum:"android,ios,web"`
		DeviceID string `json:"device_id" doc:"What the app calls this installation: the same one for as long as it is installed"`
	}
}

func (a *api) addDevice(ctx context.Context, in *newDeviceInput) (*onceOutput[deviceBody], error) {
	r := push.Registration{Token: in.Body.Token, Platform: in.Body.Platform, DeviceID: in.Body.DeviceID}
	return once(ctx, a, in.Keyed, in.Body, func(tx *sqlite.Tx) (made[deviceBody], error) {
		d, err := a.Tokens.RegisterTx(tx, caller(ctx).UserID, r)
		return made[deviceBody]{Location: "/v1/push-tokens/" + url.PathEscape(d.DeviceID), Body: showDevice(d)}, err
	})
}

func (a *api) listDevices(ctx context.Context, in *ListInput) (*listOutput[deviceBody], error) {
	owner := caller(ctx).UserID
	list := []string{"push-tokens", owner}
	after, err := a.place(in.Cursor, list)
	if err != nil {
		return nil, err
	}
	devices, err := a.Tokens.List(ctx, owner) // in the order of their ids; a person has few
	if err != nil {
		return nil, err
	}
	devices = slices.DeleteFunc(devices, func(d push.Device) bool { return d.DeviceID <= string(after) })
	return page(a, devices, in.limit(), showDevice, func(d push.Device) []byte { return []byte(d.DeviceID) }, list), nil
}

type deviceInput struct {
	DeviceID string `path:"device_id"`
}

// deleteDevice is repeatable: a device that is forgotten already stays so.
func (a *api) deleteDevice(ctx context.Context, in *deviceInput) (*struct{}, error) {
	return nil, a.DB.Write(ctx, func(tx *sqlite.Tx) error {
		_, err := a.Tokens.ForgetTx(tx, caller(ctx).UserID, in.DeviceID)
		return err
	})
}
