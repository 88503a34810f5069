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
	"tandem/internal/sync"
	"tandem/internal/sync/letters"
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
	Replica   *sync.Log        // of what both nodes have: what gave way in it, and what was set aside
	Letters   *letters.Box     // of which some may be parked
	Link      func() SyncState // nil: this node has no peer
	Compare   func()           // has both nodes compared as soon as they are at rest; nil: this node has no peer
	Peer      *Peer            // nil: this node has no peer that could call
	Mute      bool             // what rings here reaches nobody: no channel is configured
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
		e.Pre(a.recover(), s.Peer.guard(a))
	}
	return edge{e}
}

// routes is every route that people and phones use, on one screen.
func (a *api) routes() {
	add(a, route{"POST", "/v1/auth/login", "Log in", 200, nobody}, a.login)
	add(a, route{"POST", "/v1/auth/logout", "End this session", 204, leaving}, a.logout)

	add(a, route{"GET", "/v1/me", "Who am I", 200, session}, a.me)
	add(a, route{"PATCH", "/v1/me", "Change how I am served", 200, session}, a.changeMe)

	add(a, route{"GET", "/v1/todos", "List todos", 200, session}, a.listTodos)
	add(a, route{"POST", "/v1/todos", "Add a todo", 201, session}, a.addTodo)
	add(a, route{"GET", "/v1/todos/{ref}", "One todo", 200, session}, a.getTodo)
	add(a, route{"PATCH", "/v1/todos/{ref}", "Change a todo", 200, session}, a.changeTodo)
	add(a, route{"DELETE", "/v1/todos/{ref}", "Delete a todo", 204, session}, a.deleteTodo)
	add(a, route{"POST", "/v1/todos/{ref}/undelete", "Bring a deleted todo back", 200, session}, a.undeleteTodo)

	add(a, route{"GET", "/v1/scheduled-messages", "List reminders", 200, session}, a.listMessages)
	add(a, route{"POST", "/v1/scheduled-messages", "Add a reminder", 201, session}, a.addMessage)
	add(a, route{"GET", "/v1/scheduled-messages/{ref}", "One reminder", 200, session}, a.getMessage)
	add(a, route{"PATCH", "/v1/scheduled-messages/{ref}", "Change a reminder", 200, session}, a.changeMessage)
	add(a, route{"DELETE", "/v1/scheduled-messages/{ref}", "Delete a reminder", 204, session}, a.deleteMessage)

	add(a, route{"GET", "/v1/push-tokens", "The devices that ring", 200, session}, a.listDevices)
	add(a, route{"POST", "/v1/push-tokens", "Have a device ring", 201, session}, a.addDevice)
	add(a, route{"DELETE", "/v1/push-tokens/{device_id}", "Have a device ring no more", 204, session}, a.deleteDevice)

	add(a, route{"GET", "/v1/fires/{id}", "What became of a reminder, attempt by attempt", 200, session}, a.getFire)

	add(a, route{"GET", "/v1/sync/status", "How replication stands", 200, session}, a.syncStatus)
	add(a, route{"GET", "/v1/sync/conflicts", "What gave way to an edit on the other node", 200, session}, a.listConflicts)
	add(a, route{"POST", "/v1/sync/conflicts/{uid}/restore", "Bring back what gave way", 200, session}, a.restoreConflict)
	add(a, route{"GET", "/v1/sync/quarantine", "What could not be taken or sent", 200, admin}, a.listQuarantine)
	add(a, route{"POST", "/v1/sync/quarantine/{id}/retry", "Try one entry again now", 200, admin}, a.retryQuarantined)
	add(a, route{"POST", "/v1/sync/quarantine/{id}/discard", "Forget one entry", 200, admin}, a.discardQuarantined)
	add(a, route{"POST", "/v1/sync/quarantine/discard", "Forget all entries of one kind", 200, admin}, a.discardKind)
	add(a, route{"POST", "/v1/sync/compare", "Look now whether both nodes hold the same", 202, admin}, a.compare)
	add(a, route{"POST", "/v1/sync/held/decision", "Decide whether the deletes that are held were meant", 200, admin}, a.decideHeld)
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

// route is where a handler is found.
type route struct {
	method, path, summary string
	status                int // of success
	access
}

// access is what a route asks of its caller, and whether it keeps its answers by key.
type access struct{ session, keys, admin bool }

var (
	session = access{session: true, keys: true}
	admin   = access{session: true, keys: true, admin: true}
	nobody  = access{}
	leaving = access{session: true}
)

func add[I, O any](a *api, r route, h handler[I, O]) {
	op := huma.Operation{
		OperationID: operationID(r.method, r.path), Method: r.method, Path: r.path, Summary: r.summary, DefaultStatus: r.status,
		MaxBodyBytes: -1, BodyReadTimeout: -1, // readBody sees to both
	}
	// The gates, in order: nothing of a request is looked at before it is known whose it is.
	if r.session {
		op.Middlewares = append(op.Middlewares, a.authenticate)
		op.Security = []map[string][]string{{"session": {}}}
	}
	if r.admin {
		op.Middlewares = append(op.Middlewares, a.admins)
	}
	if !r.keys {
		op.Middlewares = append(op.Middlewares, a.noKey)
	}
	op.Middlewares = append(op.Middlewares, plainly, a.readQuery)
	if _, has := reflect.TypeFor[I]().FieldByName("Body"); has {
		op.Middlewares = append(op.Middlewares, a.readBody)
	}
	huma.Register(a.huma, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := h(ctx, in)
		if err != nil {
			return nil, a.problem(ctx, r.method+" "+r.path, err)
		}
		return out, nil
	})
	if r.method == http.MethodPatch {
		content := a.huma.OpenAPI().Paths[r.path].Patch.RequestBody.Content
		content[mergePatch] = content[plainJSON]
	}
}

func operationID(method, path string) string {
	return strings.ToLower(method) + strings.NewReplacer("/v1", "", "/", "-", "{", "", "}", "").Replace(path)
}
