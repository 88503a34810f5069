package api

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"
	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"tandem/internal/fault"
)

var errBadQuery = fault.New(fault.Malformed, "bad_query", "What follows the question mark in the address cannot be read. Write it in UTF-8, percent-encoded.")

// edge gives each body a time in which it has to come: what no handler reads, the server
// reads after it, and would for ever. It has HEAD answered wherever GET is; the server leaves the body out. The
// router goes by the request that came, whatever a middleware makes of it, and so
// does the server: each needs its own.
type edge struct{ *echo.Echo }

func (e edge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)) // a recorder has none
	}
	if r.Method == http.MethodHead {
		as := *r
		as.Method = http.MethodGet
		r = &as
	}
	e.Echo.ServeHTTP(w, r)
}

// recover makes a handler's bug one failed request.
func (a *api) recover() echo.MiddlewareFunc {
	return middleware.RecoverWithConfig(middleware.RecoverConfig{
		DisableStackAll: true,
		LogErrorFunc: func(c echo.Context, err error, stack []byte) error {
			a.Log.ErrorContext(c.Request().Context(), "a handler panicked", "route", c.Request().Method+" "+c.Path(), "error", err, "stack", string(stack))
			return refusal(http.StatusInternalServerError)
		},
	})
}

// unescape gives handlers the parts of a path as they were meant. The router leaves
// the percent-encoding in where there is any that matters, and takes nothing, or all
// that follows, for the last part.
func unescape(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r, values := c.Request(), c.ParamValues()
		if c.Path() != "" && strings.Count(c.Path(), "/") != strings.Count(echo.GetPath(r), "/") || slices.Contains(values, "") {
			return echo.ErrNotFound
		}
		if r.URL.RawPath != "" {
			for i, v := range values {
				values[i], _ = url.PathUnescape(v) // it was parsed before
			}
			c.SetParamValues(values...)
		}
		return next(c)
	}
}

// readQuery refuses a query that the standard parser would read in part, and text
// in it that no row can hold.
func (a *api) readQuery(c huma.Context, next func(huma.Context)) {
	u := c.URL()
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		a.refuse(c, errBadQuery)
		return
	}
	for _, values := range query {
		for _, v := range values {
			if !utf8.ValidString(v) || strings.IndexByte(v, 0) >= 0 {
				a.refuse(c, errBadQuery)
				return
			}
		}
	}
	next(c)
}

// plainly has huma answer in JSON whatever Accept asks for: there is nothing else,
// and an answer in another form is of more use than none.
func plainly(c huma.Context, next func(huma.Context)) {
	humaecho.Unwrap(c).Request().Header.Del("Accept")
	next(c)
}

// document serves the description of the API as it is after the last route.
func (a *api) document() echo.HandlerFunc {
	b, err := a.huma.OpenAPI().MarshalJSON()
	if err != nil {
		panic("api: no description of itself: " + err.Error())
	}
	return func(c echo.Context) error { return c.Blob(http.StatusOK, "application/openapi+json", b) }
}
