package olm

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPace(t *testing.T) {
	failed := errors.New("failed")
	p := pace{interval: 5 * time.Second}
	for _, want := range []time.Duration{200, 400, 800, 1600, 3200, 5000, 5000} {
		require.Equal(t, want*time.Millisecond, p.next(false, nil), "without an acknowledgement it slows down to the interval")
	}
	require.Equal(t, 5*time.Second, p.next(true, nil))
	require.Equal(t, 200*time.Millisecond, p.next(false, nil), "and starts anew after one")
	for _, least := range []time.Duration{200, 400, 800, 1600, 3200, 6400, 10000, 10000} {
		delay := p.next(true, failed)
		require.GreaterOrEqual(t, delay, least*time.Millisecond)
		require.LessOrEqual(t, delay, min(least*time.Millisecond*5/4, 10*time.Second))
	}
	require.Equal(t, 5*time.Second, p.next(true, nil))
	require.Less(t, p.next(true, failed), 251*time.Millisecond, "and failures start anew after a success")
}
