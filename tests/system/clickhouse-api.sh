#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The query API beside the agent, over a store in ClickHouse: the same as over the one on disk.
. "$TOP/tests/system/lib.sh"
. "$TOP/tests/clickhouse/lib.sh"
need_bpf
need_clickhouse
start_clickhouse
store=clickhouse+$clickhouse/api
. "$TOP/tests/system/api_of_store.sh"
