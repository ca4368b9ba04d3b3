// The codec of kimi-agent-sdk as a client of `everywire serve --demo`.
// Usage: client tcp ADDRESS | client unix PATH | client stdio PROGRAM
//
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/MoonshotAI/kimi-agent-sdk/go/wire/jsonrpc2"
	"interop/peer"
)

const many = 3000

var payloads = []string{
	`null`, `true`, `0`, `-1.5`, `12345678901234567890`, `"text"`, `""`, `"Zoë 世界 \ud83d\ude00 \n \u2028 \u003c\u0026"`, `[]`, `[1,[2,null]]`, `{}`,
	`{"a":{"b":[1,"x",null]},"z":1,"y":2}`,
}

func connect(kind, where string) (io.ReadWriteCloser, error) {
	if kind != "stdio" {
		return net.Dial(kind, where)
	}
	rwc, _, err := peer.Start(where, "serve", "--demo", "--listen", "jsonrpc=stdio")
	return rwc, err
}

func numbers(n int) []json.RawMessage {
	items := make([]json.RawMessage, n)
	for i := range items {
		items[i] = json.RawMessage(fmt.Sprint(i + 1))
	}
	return items
}

func unary(c *rpc.Client) error {
	for _, text := range append(payloads, `"`+strings.Repeat("x€", 250000)+`"`) {
		var in, out any
		if err := json.Unmarshal([]byte(text), &in); err != nil {
			return err
		}
		if err := c.Call("Demo.echo", json.RawMessage(text), &out); err != nil {
			return err
		}
		if err := peer.Want("echo", out, in); err != nil {
			return err
		}
	}
	return nil
}

func failing(c *rpc.Client) error {
	var out any
	var told struct {
		Code    int
		Message string
		Data    struct{ Status string }
	}
	err := c.Call("Demo.fail", map[string]any{"status": "FAILED_PRECONDITION", "message": "told why"}, &out)
	if err == nil {
		return fmt.Errorf("it did not fail")
	}
	if bad := json.Unmarshal([]byte(err.Error()), &told); bad != nil {
		return bad
	}
	return peer.Want("error", told, "{-32000 told why {FAILED_PRECONDITION}}")
}

func unknown(c *rpc.Client) error {
	var out any
	err := c.Call("Demo.nothing", struct{}{}, &out)
	if err == nil || !strings.Contains(err.Error(), "-32601") {
		return fmt.Errorf("not -32601: %v", err)
	}
	return nil
}

// Uploads 1..n and wants their sum.
func upload(c *rpc.Client, n int) error {
	var total int
	if err := c.Call("Demo.sum", &peer.Upload{Base: struct{}{}, Items: numbers(n)}, &total); err != nil {
		return err
	}
	return peer.Want("sum", total, n*(n+1)/2)
}

// Calls a method with a stream as its result; returns the frames.
func frames(c *rpc.Client, method string, input any) ([]json.RawMessage, error) {
	got := peer.NewDownload()
	if err := c.Call("Demo."+method, input, got); err != nil {
		return nil, err
	}
	return got.Wait()
}

// One frame of ?stream=events. Exactly one member is there.
type event struct {
	Chunk, Result json.RawMessage
	Error         *struct {
		Message string
		Data    struct{ Status string }
	}
}

// Calls a method with ?stream=events; returns the chunks and the end. A stream without an end was cut off.
func events(c *rpc.Client, method string, input any) (chunks []json.RawMessage, end event, err error) {
	all, err := frames(c, method+"?stream=events", input)
	for i, item := range all {
		var e event
		if err := json.Unmarshal(item, &e); err != nil {
			return nil, e, err
		}
		switch {
		case e.Chunk != nil:
			chunks = append(chunks, e.Chunk)
		case i+1 == len(all):
			return chunks, e, nil
		default:
			return nil, e, fmt.Errorf("frames follow the end: %.300s", all)
		}
	}
	if err == nil {
		err = fmt.Errorf("the stream was cut off after %d chunks", len(chunks))
	}
	return chunks, end, err
}

func wantNumbered(all []json.RawMessage, n int) error {
	for i, item := range all {
		if err := peer.Want("chunk", string(item), fmt.Sprintf(`{"index":%d,"text":"chunk number %d"}`, i, i)); err != nil {
			return err
		}
	}
	return peer.Want("chunks", len(all), n)
}

func download(c *rpc.Client, n int) error {
	input := map[string]int{"n": n}
	chunks, end, err := events(c, "stream", input)
	if err != nil {
		return err
	}
	if err := wantNumbered(chunks, n); err != nil {
		return err
	}
	return peer.Want("result", string(end.Result), fmt.Sprintf(`{"n":%d}`, n))
}

// The older form: the codec drops the data of the close frame, so there is no result.
func downloadChunks(c *rpc.Client, n int) error {
	all, err := frames(c, "stream?stream=true", map[string]int{"n": n})
	if err != nil {
		return err
	}
	return wantNumbered(all, n)
}

// With the older form a failure looks like a clean end; with events it is seen.
func failingStream(c *rpc.Client) error {
	input := map[string]any{"status": "FAILED_PRECONDITION", "message": "told why"}
	if all, err := frames(c, "fail?stream=true", input); err != nil || len(all) != 0 {
		return fmt.Errorf("the codec shows the data of close frames: %s, %v", all, err)
	}
	chunks, end, err := events(c, "fail", input)
	if err != nil {
		return err
	}
	if end.Error == nil {
		return fmt.Errorf("it did not fail: %s", end.Result)
	}
	return peer.Want("end", fmt.Sprint(len(chunks), end.Error.Message, end.Error.Data.Status), fmt.Sprint(0, "told why", "FAILED_PRECONDITION"))
}

func both(c *rpc.Client) error {
	chunks, end, err := events(c, "sum", &peer.Upload{Base: struct{}{}, Items: numbers(5)})
	if err != nil {
		return err
	}
	return peer.Want("totals", fmt.Sprintf("%s %s", chunks, end.Result), "[1 3 6 10 15] 15")
}

func atOnce(n int, body func(int) error) error {
	errs := make([]error, n)
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() { errs[i] = body(i) })
	}
	wait.Wait()
	bad := 0
	var first error
	for _, err := range errs {
		if err != nil {
			bad++
			first = err
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d went wrong: %w", bad, n, first)
	}
	return nil
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: client tcp|unix|stdio WHERE")
		os.Exit(2)
	}
	rwc, err := connect(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
	client := rpc.NewClientWithCodec(jsonrpc2.NewCodec(rwc, jsonrpc2.WaitStreamTimeout(2*peer.Limit), jsonrpc2.ClientMethodRenamer(jsonrpc2.RenamerFunc(func(name string) string {
		return strings.TrimPrefix(name, "Demo.")
	}))))
	var checks peer.Checks
	checks.Check("unary, many kinds of payload", func() error { return unary(client) })
	checks.Check("an error with code, message and data", func() error { return failing(client) })
	checks.Check("an unknown method", func() error { return unknown(client) })
	checks.Check("upload of 10", func() error { return upload(client, 10) })
	checks.Check("upload of none", func() error { return upload(client, 0) })
	checks.Check("upload of 20000", func() error { return upload(client, 20000) })
	checks.Check("download of 100", func() error { return download(client, 100) })
	checks.Check("download of 100 as bare chunks", func() error { return downloadChunks(client, 100) })
	checks.Check("a stream that fails", func() error { return failingStream(client) })
	checks.Check("both at once", func() error { return both(client) })
	checks.Check("1000 unary at once", func() error {
		return atOnce(1000, func(i int) error {
			var out int
			if err := client.Call("Demo.echo", i, &out); err != nil {
				return err
			}
			return peer.Want("echo", out, i)
		})
	})
	peer.Patience = 3 * time.Second
	checks.Check(fmt.Sprint(many, " downloads at once"), func() error { return atOnce(many, func(int) error { return download(client, 10) }) })
	checks.Check(fmt.Sprint(many, " uploads at once"), func() error { return atOnce(many, func(int) error { return upload(client, 10) }) })
	checks.Finish("go client " + os.Args[1])
}
