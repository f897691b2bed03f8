# SPDX-License-Identifier: Apache-2.0
# How the libraries of packages.txt are found and linked.
NANOPB_PLUGIN := $(firstword $(wildcard /usr/bin/protoc-gen-nanopb) protoc-gen-nanopb)
BPF_INCLUDES := -I$(SYSROOT)/usr/include/$(TRIPLE_$(ARCH)) $(if $(CROSS),-I$(SYSROOT)/usr/include)
INCLUDES :=
LIBS := -lbpf -ldw -lelf -lprotobuf-nanopb -lmicrohttpd -lcurl -lz -llzma -lzstd -liberty -lZydis -lseccomp -lpcre2-8 -lpthread -lm
