package docblocks_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// shownAddress is where services on the pages listen.
const shownAddress = "127.0.0.1:8080"

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// serve runs a service that was built, and lets two clients use it at once.
func (p *place) serve(address string) error {
	var said bytes.Buffer
	service := exec.Command(filepath.Join(p.folder, "program"))
	service.Dir, service.Env, service.Stderr = p.folder, p.env, &said
	if err := service.Start(); err != nil {
		return err
	}
	defer func() {
		service.Process.Kill()
		service.Wait()
	}()
	for until := time.Now().Add(time.Minute); ; {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			break
		}
		if time.Now().After(until) {
			return fmt.Errorf("the service does not listen: %w\n%s", err, &said)
		}
		time.Sleep(20 * time.Millisecond)
	}
	answers := make([]string, 2)
	errs := make([]error, 2)
	var clients sync.WaitGroup
	for i := range answers {
		clients.Go(func() {
			r, err := http.PostForm("http://"+address, url.Values{"prompt": {"Once upon a time"}})
			if errs[i] = err; err != nil {
				return
			}
			defer r.Body.Close()
			b, err := io.ReadAll(r.Body)
			if answers[i], errs[i] = string(b), err; err == nil && (r.StatusCode != http.StatusOK || len(b) == 0) {
				errs[i] = fmt.Errorf("%s: %q", r.Status, b)
			}
		})
	}
	clients.Wait()
	if errs[0] != nil || errs[1] != nil || answers[0] != answers[1] || bytes.Contains([]byte(answers[0]), []byte("error:")) {
		return fmt.Errorf("%v, %v: %q and %q\n%s", errs[0], errs[1], answers[0], answers[1], &said)
	}
	return nil
}
