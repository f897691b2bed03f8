# SPDX-License-Identifier: Apache-2.0
# How the libraries of packages.txt are found and linked.
NANOPB_PLUGIN := $(firstword $(wildcard /usr/bin/protoc-gen-nanopb) protoc-gen-nanopb)
MULTIARCH := $(shell $(CC) -print-multiarch 2>/dev/null)
BPF_INCLUDES := $(if $(MULTIARCH),-I/usr/include/$(MULTIARCH))
INCLUDES :=
LIBS := -lbpf -ldw -lelf -lprotobuf-nanopb -lmicrohttpd -lcurl -lz -liberty -lZydis -lseccomp -lpthread -lm
