package conditions

import "math"

// DecodeNumber reads a generation from a value of a decoded JSON object. Text
// that looks like a number, fractions and negative numbers are invalid.
func DecodeNumber(value any) Number {
	switch v := value.(type) {
	case nil:
		return Number{}
	case int64:
		return wholeNumber(v)
	case int:
		return wholeNumber(int64(v))
	case float64:
		// Some clients write 5.0; it is still the number 5 as long as a float
		// holds it exactly.
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return wholeNumber(int64(v))
		}
	}
	return Number{State: NumberInvalid}
}

func wholeNumber(v int64) Number {
	if v < 0 {
		return Number{State: NumberInvalid}
	}
	return Number{State: NumberPresent, Value: v}
}

// Decode reads the value that an object holds under status.conditions. Entries
// that are no conditions are left out; an entry whose status is not True, False
// or Unknown is kept with an empty Status, so that it is never taken for absent.
func Decode(value any) List {
	if value == nil {
		return List{}
	}
	entries, ok := value.([]any)
	if !ok {
		return List{Unreadable: true}
	}
	if len(entries) > MaxForeign {
		return List{Overflow: true}
	}
	items := make([]Condition, 0, len(entries))
	for _, entry := range entries {
		if c, ok := decodeOne(entry); ok {
			items = append(items, c)
		}
	}
	return List{Items: items}
}

func decodeOne(entry any) (Condition, bool) {
	fields, ok := entry.(map[string]any)
	if !ok {
		return Condition{}, false
	}
	kind, ok := fields["type"].(string)
	if !ok || kind == "" {
		return Condition{}, false
	}
	c := Condition{Type: kind, ObservedGeneration: DecodeNumber(fields["observedGeneration"])}
	switch status, _ := fields["status"].(string); status {
	case "True", "False", "Unknown":
		c.Status = status
	}
	if reason, ok := fields["reason"].(string); ok {
		c.Reason = Line(reason, MaxForeignReason)
	}
	if message, ok := fields["message"].(string); ok {
		c.Message = Line(message, MaxForeignText)
	}
	return c, true
}

// Find returns the first condition of the given type and how many there are.
func (l List) Find(conditionType string) (found Condition, count int) {
	for _, c := range l.Items {
		if c.Type != conditionType {
			continue
		}
		if count == 0 {
			found = c
		}
		count++
	}
	return found, count
}
