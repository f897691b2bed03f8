// SPDX-License-Identifier: Apache-2.0

// An HTTP server that answers with sorted and compressed JSON; prints the port it got.
package main

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"sort"
)

func answer(w http.ResponseWriter, r *http.Request) {
	list := make([]int, 500)
	for i := range list {
		list[i] = i * 7919 % 500
	}
	sort.Slice(list, func(i, j int) bool { return list[i] < list[j] })
	z := gzip.NewWriter(w)
	_ = json.NewEncoder(z).Encode(map[string]interface{}{"url": r.URL.Path, "list": list})
	_ = z.Close()
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	_ = http.Serve(listener, http.HandlerFunc(answer))
}
