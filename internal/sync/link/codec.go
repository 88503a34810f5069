package link

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

const (
	maxBody   = 16 << 20 // bytes of what one call carries either way, as they are when unpacked
	smallBody = 1 << 10  // what is not longer goes as it is
	coding    = "zstd"
)

var errTooLong = errors.New("more than 16 MiB")

// codec packs what crosses. A few thousand rows say the same words, and the line
// from a home is narrow.
type codec struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

func newCodec() codec {
	// Pages are 1 MiB: a larger window would cost memory and find nothing more.
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2),
		zstd.WithWindowSize(512<<10), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic("link: " + err.Error()) // the options are constant
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxBody))
	if err != nil {
		panic("link: " + err.Error())
	}
	return codec{enc, dec}
}

// pack returns b packed, and the name of the coding; b and no name where it is
// short, or the other end did not say that it understands.
func (c codec) pack(b []byte, understood bool) ([]byte, string) {
	if !understood || len(b) <= smallBody {
		return b, ""
	}
	return c.enc.EncodeAll(b, make([]byte, 0, len(b)/4)), coding
}

// errCoding refuses a body that came in a coding which nobody offered.
var errCoding = errors.New("an unknown content coding")

// unpack undoes pack. It gives up where the result is longer than a body may be,
// however short the packed form is.
func (c codec) unpack(b []byte, name string) ([]byte, error) {
	switch name {
	case "", "identity":
		return b, nil
	case coding:
		out, err := c.dec.DecodeAll(b, nil)
		if errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded) {
			return nil, errTooLong
		}
		if err != nil {
			return nil, fmt.Errorf("unpack: %w", err)
		}
		return out, nil
	}
	return nil, errCoding
}

// understands reports whether a list such as Accept-Encoding names the coding.
func understands(list string) bool {
	for part := range strings.SplitSeq(list, ",") {
		name, weight, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(name), coding) && strings.ReplaceAll(weight, " ", "") != "q=0" {
			return true
		}
	}
	return false
}

const (
	longBody = 64 << 10  // bytes; how soon a shorter one came says little of the line
	fastLine = 100 << 20 // bytes a second: to pack and unpack takes longer than to send what that saves
)

// feel notes how fast the line is: within one house or machine nothing is gained by
// packing. A long answer tells, whether it came packed or not, so that a line that
// has become slow is noticed by the next one.
func (p *Peer) feel(bytes int, took time.Duration) {
	if bytes >= longBody && took > 0 {
		p.fast.Store(float64(bytes) > fastLine*took.Seconds())
	}
}

// accepts is the Accept-Encoding of a call.
func (p *Peer) accepts() string {
	if p.fast.Load() {
		return "identity"
	}
	return coding
}
