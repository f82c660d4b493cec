package core

import (
	"errors"
	"fmt"
)

// What callers must tell apart; every error of this package that is not one
// of the memory's, the loops' or the file system's matches one of them.
var (
	// ErrInvalidModel is a description, parameter set or file that does not
	// make a model.
	ErrInvalidModel = errors.New("invalid model")
	// ErrInvalidArgument is an input that does not fit the model or the call.
	ErrInvalidArgument = errors.New("invalid argument")
	// ErrDiverged is a training whose loss or gradient is no finite number.
	ErrDiverged = errors.New("the training diverged")
)

// errOverflow is an invalid argument: features that overflow.
var errOverflow = fmt.Errorf("%w: overflow", ErrInvalidArgument)

// invalidModel returns an error that matches ErrInvalidModel and begins with
// the thing that is wrong: a field or a tensor.
func invalidModel(subject, format string, arguments ...any) error {
	return &refusal{ErrInvalidModel, subject + ": " + fmt.Sprintf(format, arguments...)}
}

// invalidArgument is invalidModel for ErrInvalidArgument.
func invalidArgument(subject, format string, arguments ...any) error {
	return &refusal{ErrInvalidArgument, subject + ": " + fmt.Sprintf(format, arguments...)}
}

type refusal struct {
	kind    error
	message string
}

func (r *refusal) Error() string        { return r.message }
func (r *refusal) Is(target error) bool { return errors.Is(r.kind, target) }
