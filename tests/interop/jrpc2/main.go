// creachadair/jrpc2, both sides. Its LSP framing writes Content-Type before Content-Length.
// Usage: jrpc2 client any|jsonrpc ADDRESS | jrpc2 server PROGRAM
//
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/channel"
	"github.com/creachadair/jrpc2/handler"
)

const limit = 120 * time.Second // for hangs only

var passed, failed int

func check(name string, err error) {
	if err == nil {
		passed++
		fmt.Println("ok", name)
		return
	}
	failed++
	fmt.Println("FAIL", name+":", err)
}

func want(what string, got, expected any) error {
	g, _ := json.Marshal(got)
	e, _ := json.Marshal(expected)
	if string(g) != string(e) {
		return fmt.Errorf("%s is %s instead of %s", what, g, e)
	}
	return nil
}

// ---- its client, our server ----

func echo(c *jrpc2.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for _, text := range []string{`{}`, `[]`, `[1,"Zoë 世界",null]`, `{"n":12345678901234567890,"s":"a\nb"}`, `["` + strings.Repeat("x€", 100000) + `"]`} {
		var out json.RawMessage
		if err := c.CallResult(ctx, "echo", json.RawMessage(text), &out); err != nil {
			return err
		}
		if string(out) != text {
			return fmt.Errorf("%.60s came back as %.60s", text, out)
		}
	}
	return nil
}

func failures(c *jrpc2.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	_, err := c.Call(ctx, "nothing", nil)
	if jrpc2.ErrorCode(err) != jrpc2.MethodNotFound {
		return fmt.Errorf("an unknown method is %v", err)
	}
	_, err = c.Call(ctx, "fail", map[string]any{"status": "ABORTED", "message": "no"})
	if err == nil || !strings.Contains(err.Error(), "no") {
		return fmt.Errorf("a failure is %v", err)
	}
	return nil
}

func batch(c *jrpc2.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	answers, err := c.Batch(ctx, []jrpc2.Spec{
		{Method: "echo", Params: []int{1}}, {Method: "echo", Params: []int{2}, Notify: true}, {Method: "echo", Params: []int{3}}})
	if err != nil {
		return err
	}
	var got []string
	for _, answer := range answers {
		got = append(got, answer.ResultString())
	}
	return want("a batch", got, []string{"[1]", "[3]"})
}

func atOnce(c *jrpc2.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var wait sync.WaitGroup
	errs := make(chan error, 500)
	for i := range 500 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			var out []int
			if err := c.CallResult(ctx, "echo", []int{i}, &out); err != nil {
				errs <- err
			} else if len(out) != 1 || out[0] != i {
				errs <- fmt.Errorf("%d came back as %v", i, out)
			}
		}()
	}
	wait.Wait()
	close(errs)
	return <-errs
}

func client(kind, address string) {
	framings := []struct {
		name    string
		framing channel.Framing
	}{{"LSP", channel.LSP}, {"Line", channel.Line}, {"Header of another type", channel.Header("application/json")}}
	for _, f := range framings {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			check("jrpc2 client, "+f.name, err)
			continue
		}
		c := jrpc2.NewClient(f.framing(conn, conn), nil)
		for _, part := range []struct {
			name string
			run  func(*jrpc2.Client) error
		}{{"echo", echo}, {"failures", failures}, {"batch", batch}, {"500 calls at once", atOnce}} {
			check(fmt.Sprintf("jrpc2 client, %s, port for %s: %s", f.name, kind, part.name), part.run(c))
		}
		c.Close()
	}
}

// ---- its server, our command ----

func serve(listener net.Listener, framing channel.Framing) {
	methods := handler.Map{
		"greet": handler.New(func(_ context.Context, in struct{ Name string }) (string, error) {
			return "Hello, " + in.Name + "!", nil
		}),
		"fail": handler.New(func(context.Context, map[string]any) (any, error) { return nil, jrpc2.Errorf(7, "no") }),
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		jrpc2.NewServer(methods, nil).Start(framing(conn, conn))
	}
}

func run(program string, words ...string) (out, text string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	command := exec.CommandContext(ctx, program, words...)
	var errors strings.Builder
	command.Stderr = &errors
	bytes, err := command.Output()
	return string(bytes), errors.String(), err
}

func server(program string) {
	for _, f := range []struct {
		name, query string
		framing     channel.Framing
	}{{"LSP", "?framing=lsp", channel.LSP}, {"Line", "", channel.Line}} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			check("jrpc2 server, "+f.name, err)
			continue
		}
		go serve(listener, f.framing)
		target := "jsonrpc://" + listener.Addr().String() + f.query
		out, text, err := run(program, "call", target, "greet", `{"Name":"Ada"}`)
		if err == nil {
			err = want("the result", out, "\"Hello, Ada!\"\n")
		}
		check("jrpc2 server, "+f.name+": a call", err)
		_, text, err = run(program, "call", target, "fail", "{}")
		if err != nil && strings.Contains(text, `"message":"no"`) {
			err = nil
		} else {
			err = fmt.Errorf("a failure is %v: %s", err, text)
		}
		check("jrpc2 server, "+f.name+": a failure", err)
		listener.Close()
	}
}

func main() {
	if len(os.Args) == 4 && os.Args[1] == "client" {
		client(os.Args[2], os.Args[3])
	} else if len(os.Args) == 3 && os.Args[1] == "server" {
		server(os.Args[2])
	} else {
		_, _ = io.WriteString(os.Stderr, "usage: jrpc2 client any|jsonrpc ADDRESS | jrpc2 server PROGRAM\n")
		os.Exit(2)
	}
	fmt.Printf("interop jrpc2: %d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
