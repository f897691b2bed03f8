# SPDX-License-Identifier: Apache-2.0
# How the libraries of packages.txt are found and linked; libcurl is loaded at run time (base/curl.c).
NANOPB_PLUGIN := $(firstword $(wildcard /usr/bin/protoc-gen-nanopb) protoc-gen-nanopb)
BPF_INCLUDES := -I$(SYSROOT)/usr/include/$(TRIPLE_$(ARCH)) $(if $(CROSS),-I$(SYSROOT)/usr/include)
# Newer packages of nanopb have a folder of their own.
INCLUDES := $(addprefix -I,$(wildcard $(SYSROOT)/usr/include/nanopb))
LIBS := -lbpf -ldw -lelf -lZydis -liberty
LIBS += -lmicrohttpd -lgnutls -lnghttp2
LIBS += -lz -ldeflate -llzma -lzstd -ljansson -lsqlite3
LIBS += -lseccomp -lyaml -lpcre2-8 -lpthread -lm
