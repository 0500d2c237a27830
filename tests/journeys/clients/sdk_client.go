// The task of Go's own HTTP client: `go run sdk_client.go BASE`. Says nothing.
package main

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
)

func ask(method string, url string, kind string, body io.Reader) {
	request, err := http.NewRequest(method, url, body)
	check(err)
	if kind != "" {
		request.Header.Set("Content-Type", kind)
	}
	answer, err := http.DefaultClient.Do(request)
	check(err)
	defer answer.Body.Close()
	_, err = io.ReadAll(answer.Body)
	check(err)
	if answer.StatusCode != 200 {
		panic(answer.Status)
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	base := os.Args[1] + "/plain/go"
	ask("GET", base+"/things?b=2&a=1&a=3", "", nil)
	ask("POST", base+"/json", "application/json", strings.NewReader(`{"b": 1.5, "a": "ü"}`))
	form := url.Values{"a": {"1"}, "b": {"ü"}}.Encode()
	ask("POST", base+"/form", "application/x-www-form-urlencoded", strings.NewReader(form))
	var parts bytes.Buffer
	writer := multipart.NewWriter(&parts)
	check(writer.WriteField("n", "1"))
	file, err := writer.CreateFormFile("f", "a.txt")
	check(err)
	_, err = file.Write([]byte("text"))
	check(err)
	check(writer.Close())
	ask("POST", base+"/upload", writer.FormDataContentType(), &parts)
	var all sync.WaitGroup
	for n := range 8 { // all at once, so in any order
		all.Go(func() { ask("GET", base+"/things?n="+strconv.Itoa(n), "", nil) })
	}
	all.Wait()
}
