// Package peer holds what the programs here share: values that stream by the codec's contracts, connections, checks.
//
// SPDX-License-Identifier: Apache-2.0
package peer

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// Patience is how long a receiver waits before it asks for its first frame. The codec looks again only after as many seconds as there
// are frames of all streams in its list, so a reader that asks too early among many others waits for hours.
var Patience = 200 * time.Millisecond

// Limit is how long a single check may take; it only ends what hangs.
const Limit = 60 * time.Second

// Upload is a params or result value that sends its items as a stream. Base is what the base message carries.
type Upload struct {
	Base  any
	Items []json.RawMessage
}

// MarshalJSON writes the base message's value.
func (u *Upload) MarshalJSON() ([]byte, error) { return json.Marshal(u.Base) }

// Sender offers all items at once. One wake sends one frame, the close frame included. It wakes as soon as it can, so that frames may
// overtake their own base message: that is what programs on this codec do.
func (u *Upload) Sender(wake func()) <-chan json.RawMessage {
	ch := make(chan json.RawMessage, len(u.Items))
	for _, item := range u.Items {
		ch <- item
	}
	close(ch)
	go func() {
		for range len(u.Items) + 1 {
			wake()
		}
	}()
	return ch
}

// Download is a params or result value that collects a stream. Its base value is kept as it came.
type Download struct {
	Base json.RawMessage
	done chan []json.RawMessage
}

// NewDownload makes one that is ready to receive.
func NewDownload() *Download { return &Download{done: make(chan []json.RawMessage, 1)} }

// UnmarshalJSON keeps the base message's value.
func (d *Download) UnmarshalJSON(b []byte) error {
	d.Base = append(json.RawMessage(nil), b...)
	if d.done == nil {
		d.done = make(chan []json.RawMessage, 1)
	}
	return nil
}

// Receiver asks for frames one by one; the end of the stream needs a wake too.
func (d *Download) Receiver(wake func(), _ func()) chan<- json.RawMessage {
	ch := make(chan json.RawMessage, 1)
	go func() {
		var all []json.RawMessage
		time.Sleep(Patience)
		wake()
		for item := range ch {
			all = append(all, append(json.RawMessage(nil), item...))
			wake()
		}
		d.done <- all
	}()
	return ch
}

// Wait returns what came, after the close frame.
func (d *Download) Wait() ([]json.RawMessage, error) {
	select {
	case all := <-d.done:
		return all, nil
	case <-time.After(Limit):
		return nil, fmt.Errorf("the stream has no end after %v", Limit)
	}
}

// Pair is a stream to read from and one to write to, as one connection.
type Pair struct {
	io.Reader
	io.WriteCloser
}

// Stdio is this process' standard input and output.
func Stdio() io.ReadWriteCloser { return Pair{os.Stdin, os.Stdout} }

// Start runs a program and connects to its standard input and output.
func Start(name string, args ...string) (io.ReadWriteCloser, *exec.Cmd, error) {
	cmd := exec.Command(name, args...)
	cmd.Stderr = io.Discard
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	return Pair{out, in}, cmd, cmd.Start()
}

// Checks counts and prints.
type Checks struct{ number, failed int }

// Check runs one; a panic of the check is the program's.
func (c *Checks) Check(name string, body func() error) {
	c.number++
	end := make(chan error, 1)
	go func() { end <- body() }()
	var err error
	select {
	case err = <-end:
	case <-time.After(Limit + 10*time.Second):
		err = fmt.Errorf("no end")
	}
	if err == nil {
		fmt.Printf("ok %d - %s\n", c.number, name)
		return
	}
	c.failed++
	fmt.Printf("FAIL %d - %s\n# %v\n", c.number, name, err)
}

// Finish prints the summary and leaves.
func (c *Checks) Finish(name string) {
	fmt.Printf("interop %s: %d passed, %d failed\n", name, c.number-c.failed, c.failed)
	if c.failed > 0 {
		os.Exit(1)
	}
	os.Exit(0)
}

// Want compares by text.
func Want(what string, got, want any) error {
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		return fmt.Errorf("%s: %.300s instead of %.300s", what, g, w)
	}
	return nil
}
