#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# kill -9 at any time, of hearth or first of its helper: nothing pinned, no BPF object, no process, no file is left but FILE.part.
# HEARTH_LONG=1: 300 rounds.
# Alone: no BPF object of any hearth may be left.
. "$TOP/tests/system/lib.sh"
need_bpf
export PATH=$PATH:/usr/sbin

rounds=16
[ "${HEARTH_LONG:-0}" = 0 ] || rounds=300
start busy "$TRUTH/c_chain" 170
# in a mount namespace with a BPF file system of its own: machines without systemd have none
unshare -m sh -c 'mount -t bpf bpf /sys/fs/bpf && exec "$@"' sh python3 "$TOP/tests/system/killed.py" "$HEARTH" $rounds "$started"
