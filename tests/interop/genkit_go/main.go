// A Genkit app in Go, for the reflection wire: the real runtime. Started with GENKIT_ENV=dev and GENKIT_REFLECTION_V2_SERVER it dials
// the manager; what happens inside is noted in the file EW_APP_LOG, one line each ("cancelled").
//
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/firebase/genkit/go/core"
	"github.com/firebase/genkit/go/core/api"
	"github.com/firebase/genkit/go/genkit"
)

type chunk struct {
	I int `json:"i"`
}

func note(text string) {
	log, err := os.OpenFile(os.Getenv("EW_APP_LOG"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer log.Close()
	fmt.Fprintln(log, text)
}

func hello(ctx context.Context, name string) (string, error) { return "Hello, " + name + "!", nil }

func echo(ctx context.Context, input any) (any, error) { return input, nil }

func big(ctx context.Context, n int) (string, error) { return strings.Repeat("x", n), nil }

func failing(ctx context.Context, input any) (any, error) {
	return nil, core.NewError(core.FAILED_PRECONDITION, "told why")
}

func who(ctx context.Context, input any) (map[string]any, error) {
	return map[string]any{"context": core.FromContext(ctx)}, nil
}

func streamy(ctx context.Context, n int, send core.StreamCallback[chunk]) (string, error) {
	for i := 0; i < n && send != nil; i++ {
		if err := send(ctx, chunk{i}); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("done %d", n), nil
}

func slow(ctx context.Context, ms int) (string, error) {
	note(fmt.Sprintf("slow begins in %d", os.Getpid()))
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
		return "slept", nil
	case <-ctx.Done():
		note("cancelled")
		return "", ctx.Err()
	}
}

func sum(ctx context.Context, _ struct{}, in <-chan float64, out chan<- float64) (float64, error) {
	total := 0.0
	for number := range in {
		total += number
		out <- total
	}
	return total, nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	g := genkit.Init(ctx)
	genkit.DefineFlow(g, "hello", hello)
	genkit.DefineFlow(g, "echo", echo)
	genkit.DefineFlow(g, "big", big)
	genkit.DefineFlow(g, "failing", failing)
	genkit.DefineFlow(g, "who", who)
	genkit.DefineFlow(g, "slow", slow)
	genkit.DefineStreamingFlow(g, "streamy", streamy)
	genkit.RegisterAction(g, core.NewBidiActionOf(api.ActionTypeCustom, "sum", nil, sum))
	<-ctx.Done()
}
