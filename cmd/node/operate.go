package main

import (
	"context"
	"errors"
)

// operate has the node do what a verb asks for: the one that runs, or else one that
// is opened for it, which takes the folder for as long.
func operate[I, O any](ctx context.Context, o *options, verb string, in I, do func(*node, context.Context, I) (O, error)) (answer O, err error) {
	c, err := o.load()
	if err != nil {
		return answer, err
	}
	answer, running, err := ask[O](ctx, c.Node.Data, verb, in)
	if err != nil || running {
		return answer, err
	}
	out := world()
	f, err := openFolder(ctx, c.Node.Data, out, o.logger())
	if err != nil {
		return answer, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	n, err := newNode(ctx, c, f, out, o.logger())
	if err != nil {
		return answer, err
	}
	n.configFile = o.configFile
	return do(n, ctx, in)
}
