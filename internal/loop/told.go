package loop

// told is an error that needs no line in the log.
type told struct{ error }

func (t told) Unwrap() error { return t.error }

// Told marks an error that the work has told of in its own way, or chose not to: the
// loop backs off as after any other, and logs nothing. A nil error stays nil.
func Told(err error) error {
	if err == nil {
		return nil
	}
	return told{err}
}
