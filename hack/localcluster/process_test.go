package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func shell(name, script string) program {
	return program{name: name, path: "/bin/sh", args: []string{"-c", script}, listening: "127.0.0.1:1"}
}

func TestDeathOfAChildIsTold(t *testing.T) {
	ctx, group := newProcessGroup(t.Context(), t.TempDir(), os.Environ())
	defer group.stop()
	if err := group.start(shell("broken", "echo the reason; exit 3")); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	var death *childDeath
	if !errors.As(context.Cause(ctx), &death) {
		t.Fatalf("cause = %v", context.Cause(ctx))
	}
	for _, want := range []string{"broken on 127.0.0.1:1 ended unexpectedly", "exit status 3", "the reason", "broken.log"} {
		if !strings.Contains(death.Error(), want) {
			t.Errorf("no %q in %q", want, death)
		}
	}
}

func TestChildrenEndInReverseOrder(t *testing.T) {
	dir := t.TempDir()
	order := filepath.Join(dir, "order")
	ctx, group := newProcessGroup(t.Context(), dir, os.Environ())
	group.patience = 300 * time.Millisecond
	for _, name := range []string{"first", "second", "stubborn"} {
		trap := "echo " + name + " >> " + order + "; exit"
		if name == "stubborn" {
			trap = "echo stubborn >> " + order
		}
		if err := group.start(shell(name, "trap '"+trap+"' TERM; echo ready; while true; do sleep 0.02; done")); err != nil {
			t.Fatal(err)
		}
		for !strings.Contains(lastLinesOfFile(filepath.Join(dir, name+".log"), 1), "ready") {
			time.Sleep(5 * time.Millisecond)
		}
	}
	group.stop()
	content, err := os.ReadFile(order)
	if got := strings.Join(strings.Fields(string(content)), " "); err != nil || got != "stubborn second first" {
		t.Errorf("ended in the order %q, %v", got, err)
	}
	for _, c := range group.children {
		if c.cmd.ProcessState == nil {
			t.Errorf("%s still runs", c.program.name)
		}
	}
	var death *childDeath
	if errors.As(context.Cause(ctx), &death) {
		t.Errorf("an end that was asked for is told as a death: %v", death)
	}
}

func TestOnlyATakenPortIsWorthAnotherTry(t *testing.T) {
	if !portWasTaken(&childDeath{tail: "listen tcp 127.0.0.1:1: bind: address already in use"}) {
		t.Error("a taken port is not recognised")
	}
	if portWasTaken(&childDeath{tail: "unknown flag"}) || portWasTaken(errors.New("address already in use")) {
		t.Error("something else is taken for a taken port")
	}
}

func TestFreePortsCanBeListenedOn(t *testing.T) {
	found, err := freePorts()
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range []int{found.etcd, found.etcdPeer, found.apiServer, found.kwok} {
		listener, err := net.Listen("tcp", onLoopback(port))
		if err != nil {
			t.Fatalf("port %d of %+v: %v", port, found, err) // a double would fail here
		}
		defer listener.Close()
	}
}
