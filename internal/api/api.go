// Package api is the node as seen over HTTP. It alone imports echo and huma: a
// handler decodes, calls one domain, and encodes; every failure is returned, and
// leaves as a problem of RFC 9457 with a stable code.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"
	"github.com/labstack/echo/v4"

	"tandem/internal/push"
	"tandem/internal/scheduler"
	"tandem/internal/settings"
	"tandem/internal/sqlite"
	"tandem/internal/todos"
	"tandem/internal/users"
)

// Services are what the handlers call.
type Services struct {
	DB        *sqlite.DB // todos.db, where every keyed request has its effect
	Users     *users.Store
	Settings  *settings.Store
	Todos     *todos.Store
	Scheduler *scheduler.Store
	Tokens    *push.Tokens
	Peer      *Peer // nil: this node has no peer that could call
	Ready     func(context.Context) error
	Secret    []byte // the node's own; list cursors and request keys are sealed with keys derived from it
	Version   string
	Crash     func(point string)
	Log       *slog.Logger
}

type api struct {
	Services
	huma     huma.API
	cursors  []byte
	requests []byte
}

// New returns the handler of every route.
func New(s Services) http.Handler {
	a := &api{Services: s, cursors: derive(s.Secret, "list cursor"), requests: derive(s.Secret, "request body")}
	e := echo.New()
	e.HTTPErrorHandler = a.unrouted
	e.IPExtractor = echo.ExtractIPDirect() // the library's default believes any X-Forwarded-For
	e.Use(a.recover(), unescape)
	e.GET("/livez", a.alive)
	e.GET("/readyz", a.ready)
	a.huma = humaecho.New(e, a.config())
	a.routes()
	e.GET("/openapi.json", a.document())
	if s.Peer != nil {
		s.Peer.routes(e, a)
	}
	return edge{e}
}

// routes is every route that people and phones use, on one screen.
func (a *api) routes() {
	post(a, "/v1/auth/login", "Log in", a.login, a.noKey)
	act(a, "/v1/auth/logout", "End this session", a.logout, a.authenticate, a.noKey)

	get(a, "/v1/me", "Who am I", a.me)
	patch(a, "/v1/me", "Change how I am served", a.changeMe)

	get(a, "/v1/todos", "List todos", a.listTodos)
	create(a, "/v1/todos", "Add a todo", a.addTodo)
	get(a, "/v1/todos/{ref}", "One todo", a.getTodo)
	patch(a, "/v1/todos/{ref}", "Change a todo", a.changeTodo)
	remove(a, "/v1/todos/{ref}", "Delete a todo", a.deleteTodo)

	get(a, "/v1/scheduled-messages", "List reminders", a.listMessages)
	create(a, "/v1/scheduled-messages", "Add a reminder", a.addMessage)
	get(a, "/v1/scheduled-messages/{ref}", "One reminder", a.getMessage)
	patch(a, "/v1/scheduled-messages/{ref}", "Change a reminder", a.changeMessage)
	remove(a, "/v1/scheduled-messages/{ref}", "Delete a reminder", a.deleteMessage)

	get(a, "/v1/push-tokens", "The devices that ring", a.listDevices)
	create(a, "/v1/push-tokens", "Have a device ring", a.addDevice)
	remove(a, "/v1/push-tokens/{device_id}", "Have a device ring no more", a.deleteDevice)

	get(a, "/v1/fires/{id}", "What became of a reminder, attempt by attempt", a.getFire)
}

// config is huma without what would name or fetch from other people's hosts.
func (a *api) config() huma.Config {
	c := huma.DefaultConfig("Tandem", a.Version)
	c.Info.Description = "One personal assistant on two machines you own."
	c.DocsPath, c.SchemasPath, c.OpenAPIPath, c.CreateHooks, c.Transformers = "", "", "", nil, nil
	c.Formats = map[string]huma.Format{plainJSON: format, problemJSON: format}
	c.RejectUnknownQueryParameters = true
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"session": {Type: "http", Scheme: "bearer", Description: "The token that POST /v1/auth/login answers with; it is good for 24 hours."},
	}
	return c
}

type handler[I, O any] func(context.Context, *I) (*O, error)

type gate = func(huma.Context, func(huma.Context))

func get[I, O any](a *api, path, summary string, h handler[I, O]) {
	register(a, http.MethodGet, path, summary, http.StatusOK, h, a.authenticate)
}

// create is a POST that makes something; it may carry an Idempotency-Key.
func create[I, O any](a *api, path, summary string, h handler[I, O]) {
	register(a, http.MethodPost, path, summary, http.StatusCreated, h, a.authenticate)
}

func post[I, O any](a *api, path, summary string, h handler[I, O], m ...gate) {
	register(a, http.MethodPost, path, summary, http.StatusOK, h, m...)
}

func act[I, O any](a *api, path, summary string, h handler[I, O], m ...gate) {
	register(a, http.MethodPost, path, summary, http.StatusNoContent, h, m...)
}

func patch[I, O any](a *api, path, summary string, h handler[I, O]) {
	register(a, http.MethodPatch, path, summary, http.StatusOK, h, a.authenticate)
	content := a.huma.OpenAPI().Paths[path].Patch.RequestBody.Content
	content[mergePatch] = content[plainJSON]
}

func remove[I, O any](a *api, path, summary string, h handler[I, O]) {
	register(a, http.MethodDelete, path, summary, http.StatusNoContent, h, a.authenticate)
}

// register adds a route. Its gates come first, in order: nothing of a request is
// looked at before it is known whose it is.
func register[I, O any](a *api, method, path, summary string, status int, h handler[I, O], m ...gate) {
	op := huma.Operation{
		OperationID: operationID(method, path), Method: method, Path: path, Summary: summary, DefaultStatus: status,
		MaxBodyBytes: -1, BodyReadTimeout: -1, // readBody sees to both
	}
	if path != "/v1/auth/login" {
		op.Security = []map[string][]string{{"session": {}}}
	}
	op.Middlewares = append(m, plainly, a.readQuery)
	if _, has := reflect.TypeFor[I]().FieldByName("Body"); has {
		op.Middlewares = append(op.Middlewares, a.readBody)
	}
	huma.Register(a.huma, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := h(ctx, in)
		if err != nil {
			return nil, a.problem(ctx, method+" "+path, err)
		}
		return out, nil
	})
}

func operationID(method, path string) string {
	return strings.ToLower(method) + strings.NewReplacer("/v1", "", "/", "-", "{", "", "}", "").Replace(path)
}
