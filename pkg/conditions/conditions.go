// Package conditions handles lists of conditions safely: those that foreign
// controllers report, in whatever shape, and our own.
//
// It is pure and never panics, whatever a status holds.
package conditions

// MaxForeign is how many conditions of one object are looked at. No known kind
// reports a quarter of it; more are refused as a whole, because an entry that is
// not looked at could contradict one that is.
const MaxForeign = 256

// Number is a generation as somebody else reports it. The zero Number is absent.
type Number struct {
	State NumberState
	// Value is meaningful only when State is NumberPresent.
	Value int64
}

// NumberState says whether a Number can be used.
type NumberState int

// The states of a Number.
const (
	// NumberAbsent: the field is not there, or is null.
	NumberAbsent NumberState = iota
	// NumberInvalid: the field holds something else than a whole number of at
	// least 0.
	NumberInvalid
	// NumberPresent: the field holds Value.
	NumberPresent
)

// Positive reports whether n is present and greater than 0, that is, whether it
// can name a generation: the first one is 1.
func (n Number) Positive() bool {
	return n.State == NumberPresent && n.Value > 0
}

// Condition is one condition as somebody else reports it, with its text bounded.
type Condition struct {
	Type string
	// Status is True, False or Unknown; empty when it is anything else.
	Status string
	Reason string
	// Message is valid UTF-8 on one line, at most MaxForeignText characters.
	Message string
	// ObservedGeneration is the condition's own; many kinds do not report it.
	ObservedGeneration Number
}

// List is what a status holds under conditions. The zero List reports nothing.
type List struct {
	Items []Condition
	// Unreadable: the field holds something else than a list.
	Unreadable bool
	// Overflow: there are more than MaxForeign entries, and none was looked at.
	Overflow bool
}
