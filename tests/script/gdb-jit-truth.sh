#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The truth for judge.py about gdb_jit_code.c: lines of each function, and who calls it, by the comments in front of them.
#   gdb-jit-truth.sh SOURCE
set -eu
awk '/^\/\* [a-z_0]*: .* \*\/$/ { name = substr($2, 1, length($2) - 1); callers = ""; for (i = 3; i < NF; i++) callers = callers " " $i; first = NR + 1 }
	/^}/ && name { print "frame", name, first, NR callers; name = "" }' "$1"
