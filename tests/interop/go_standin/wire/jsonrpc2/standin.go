// Package jsonrpc2 stands in for the codec of the same name in the module github.com/MoonshotAI/kimi-agent-sdk/go, where that module
// cannot be fetched. Its names and signatures are that module's, its behaviour was written from the protocol document: a Go peer with goroutines that race as
// the document says they do (a frame may leave before the message that opens its stream), not the real codec, and no proof about it.
//
// SPDX-License-Identifier: Apache-2.0
package jsonrpc2

import (
	"encoding/json"
	"io"
	"net/rpc"
	"strconv"
	"sync"
	"time"
)

type Renamer interface{ Rename(string) string }
type RenamerFunc func(string) string

func (f RenamerFunc) Rename(s string) string { return f(s) }

type Generator[T any] interface{ Generate() T }
type GeneratorFunc[T any] func() T

func (f GeneratorFunc[T]) Generate() T { return f() }

type StreamSender interface {
	Sender(wake func()) <-chan json.RawMessage
}
type StreamReceiver interface {
	Receiver(wake func(), close func()) chan<- json.RawMessage
}
type msg struct {
	V      string          `json:"jsonrpc"`
	ID     string          `json:"id"`
	Method string          `json:"method,omitempty"`
	Stream int             `json:"stream,omitempty"`
	Data   json.RawMessage `json:"data,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  json.RawMessage `json:"error,omitempty"`
}
type inStream struct {
	queue  []*msg
	credit int
	busy   bool
	ch     chan<- json.RawMessage
}
type Codec struct {
	rwc            io.ReadWriteCloser
	cren, sren     Renamer
	gen            Generator[string]
	mu             sync.Mutex
	senders        map[string]<-chan json.RawMessage
	in             map[string]*inStream
	cliSeq         map[string]uint64
	cliMeth        map[string]string
	srvID          map[uint64]string
	seq            uint64
	out            chan *msg
	wakes          chan string
	reqs, ress     chan *msg
	done           chan struct{}
	once           sync.Once
	thisReq, thisR *msg
}
type CodecOption func(*Codec)

func ClientMethodRenamer(r Renamer) CodecOption       { return func(c *Codec) { c.cren = r } }
func ServerMethodRenamer(r Renamer) CodecOption       { return func(c *Codec) { c.sren = r } }
func JSONIDGenerator(g Generator[string]) CodecOption { return func(c *Codec) { c.gen = g } }
func ShutdownTimeout(time.Duration) CodecOption       { return func(*Codec) {} }
func WaitStreamTimeout(time.Duration) CodecOption     { return func(*Codec) {} }
func NewCodec(rwc io.ReadWriteCloser, o ...CodecOption) *Codec {
	c := &Codec{rwc: rwc, senders: map[string]<-chan json.RawMessage{}, in: map[string]*inStream{}, cliSeq: map[string]uint64{},
		cliMeth: map[string]string{}, srvID: map[uint64]string{}, out: make(chan *msg), wakes: make(chan string),
		reqs: make(chan *msg), ress: make(chan *msg), done: make(chan struct{})}
	for _, f := range o {
		f(c)
	}
	go c.write()
	go c.read()
	return c
}
func (c *Codec) stop() { c.once.Do(func() { close(c.done) }) }
func (c *Codec) write() {
	enc := json.NewEncoder(c.rwc)
	for {
		var m *msg
		select {
		case <-c.done:
			return
		case m = <-c.out:
		case id := <-c.wakes:
			c.mu.Lock()
			s, ok := c.senders[id]
			c.mu.Unlock()
			if !ok {
				continue
			}
			d, open := <-s
			m = &msg{V: "2.0", ID: id, Stream: 2, Data: d}
			if !open {
				m = &msg{V: "2.0", ID: id, Stream: 3}
				c.mu.Lock()
				delete(c.senders, id)
				c.mu.Unlock()
			}
		}
		if enc.Encode(m) != nil {
			c.stop()
			return
		}
	}
}

// pump hands out what is there and wanted; locked. Only one at a time for a stream: handing out unlocks.
func (c *Codec) pump(id string) {
	s := c.in[id]
	if s == nil || s.busy {
		return
	}
	s.busy = true
	for s.ch != nil && s.credit > 0 && len(s.queue) > 0 {
		m := s.queue[0]
		s.queue, s.credit = s.queue[1:], s.credit-1
		if m.Stream == 3 { // its data is dropped: the reader sees an end and nothing else
			close(s.ch)
			delete(c.in, id)
			break
		}
		ch := s.ch
		c.mu.Unlock()
		ch <- m.Data
		c.mu.Lock()
	}
	s.busy = false
}

func (c *Codec) read() {
	defer c.stop()
	dec := json.NewDecoder(c.rwc)
	for {
		var m *msg
		if dec.Decode(&m) != nil {
			return
		}
		if m == nil {
			continue
		}
		c.mu.Lock()
		if m.Stream >= 2 {
			if s := c.in[m.ID]; s != nil {
				s.queue = append(s.queue, m)
				c.pump(m.ID)
			}
			c.mu.Unlock()
			continue
		}
		if m.Stream == 1 {
			c.in[m.ID] = &inStream{}
		}
		c.mu.Unlock()
		to := c.ress
		if m.Method != "" {
			to = c.reqs
		}
		select {
		case to <- m:
		case <-c.done:
			return
		}
	}
}
func (c *Codec) attach(x any, m *msg) {
	if r, ok := x.(StreamReceiver); ok && m.Stream == 1 {
		id := m.ID
		c.mu.Lock()
		s := c.in[id]
		s.ch = r.Receiver(func() {
			go func() { c.mu.Lock(); s.credit++; c.pump(id); c.mu.Unlock() }()
		}, func() {})
		c.mu.Unlock()
	}
}
func (c *Codec) offer(x any, id string) int {
	s, ok := x.(StreamSender)
	if !ok {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.senders[id] = s.Sender(func() {
		select {
		case c.wakes <- id:
		case <-c.done:
		}
	})
	return 1
}
func (c *Codec) put(m *msg) error {
	select {
	case c.out <- m:
		return nil
	case <-c.done:
		return io.EOF
	}
}
func (c *Codec) take(ch chan *msg) (*msg, error) {
	select {
	case m := <-ch:
		return m, nil
	case <-c.done:
		return nil, io.EOF
	}
}
func (c *Codec) ReadRequestHeader(r *rpc.Request) (err error) {
	if c.thisReq, err = c.take(c.reqs); err != nil {
		return
	}
	r.ServiceMethod = c.thisReq.Method
	if c.sren != nil {
		r.ServiceMethod = c.sren.Rename(r.ServiceMethod)
	}
	c.mu.Lock()
	c.seq++
	r.Seq = c.seq
	c.srvID[c.seq] = c.thisReq.ID
	c.mu.Unlock()
	return nil
}
func (c *Codec) ReadRequestBody(x any) error {
	if x == nil {
		return nil
	}
	if err := json.Unmarshal(c.thisReq.Params, x); err != nil {
		return err
	}
	c.attach(x, c.thisReq)
	return nil
}
func (c *Codec) WriteResponse(r *rpc.Response, x any) error {
	c.mu.Lock()
	id := c.srvID[r.Seq]
	delete(c.srvID, r.Seq)
	c.mu.Unlock()
	if id == "" {
		return nil
	}
	if r.Error != "" {
		e := json.RawMessage(r.Error)
		if len(r.Error) > 4 && r.Error[:4] == "rpc:" {
			e, _ = json.Marshal(map[string]any{"code": -32601, "message": r.Error})
		} else if !json.Valid(e) {
			e, _ = json.Marshal(r.Error)
		}
		return c.put(&msg{V: "2.0", ID: id, Error: e})
	}
	stream := c.offer(x, id)
	b, err := json.Marshal(x)
	if err != nil {
		return err
	}
	return c.put(&msg{V: "2.0", ID: id, Stream: stream, Result: b})
}
func (c *Codec) WriteRequest(r *rpc.Request, x any) error {
	b, err := json.Marshal(x)
	if err != nil {
		return err
	}
	id := strconv.FormatUint(r.Seq, 10)
	if c.gen != nil {
		id = c.gen.Generate()
	}
	c.mu.Lock()
	c.cliSeq[id], c.cliMeth[id] = r.Seq, r.ServiceMethod
	c.mu.Unlock()
	m := r.ServiceMethod
	if c.cren != nil {
		m = c.cren.Rename(m)
	}
	stream := c.offer(x, id)
	return c.put(&msg{V: "2.0", ID: id, Method: m, Stream: stream, Params: b})
}
func (c *Codec) ReadResponseHeader(r *rpc.Response) (err error) {
	if c.thisR, err = c.take(c.ress); err != nil {
		return
	}
	c.mu.Lock()
	r.Seq, r.ServiceMethod = c.cliSeq[c.thisR.ID], c.cliMeth[c.thisR.ID]
	delete(c.cliSeq, c.thisR.ID)
	delete(c.cliMeth, c.thisR.ID)
	c.mu.Unlock()
	r.Error = string(c.thisR.Error)
	return nil
}
func (c *Codec) ReadResponseBody(x any) error {
	if x == nil {
		return nil
	}
	if err := json.Unmarshal(c.thisR.Result, x); err != nil {
		return err
	}
	c.attach(x, c.thisR)
	return nil
}
func (c *Codec) Close() error { c.stop(); return c.rwc.Close() }
