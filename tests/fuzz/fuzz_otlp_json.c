/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OTLP/JSON decoder on arbitrary bytes, and the decoders of the other signals, JSON and protobuf. A text that they
 * accept must come through encoding and decoding unchanged; what they refuse must have a reason. Seeds are written into
 * the corpus folder at start: the protobuf seeds as JSON.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "proto/otlp/otlp.h"
#include "proto/otlp/json/json_decode.h"
#include "proto/otlp/signals.h"
#include "tests/fuzz/require.h"
#include "tests/unit/proto/otlp_bytes.h"

static const char *const seeds[] = {
	bytes_rich,
	"2{5'' 5'a' 6{} 6{1:1 2{6{1{1'k' 2{5{1{4=1} 1{7'ab'}}}}}}}} 1{1{1{3:1 2{8:1}}}}",
};

static const char plain_seed[] =
	"{\"resource_profiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"sample\":[{\"values\":[\"1\",2e0,null],"
	"\"timestampsUnixNano\":[\"\\u0031\"]}],\"profileId\":\"00ff\",\"other\":[{},[],true,1.5e-3]}]}]}]}";

/* By signal. */
static const char *const other_seeds[] = {
	"1{1{1{1'a' 2{3:1}}} 2{1{1'n'} 2{1=5 2:9 3'INFO' 5{1'text'} 6{1'k' 2{5{1{4=1}}}} 11=6 12'e'} 3'u'} 3'v'}",
	("1{2{2{1'm' 3'By' 9{1{2=1 3=2 4=3 5=4 6'01234567' 8{6=1 4'01234567'} 11=0} 2:2}} 2{10{1{6:3 8{1:1 2[1 2]}}}} "
	 "2{11{1{6{2=1}}}}}}"),
	"1{2{2{1'0123456789abcdef' 2'01234567' 5'span' 6:2 7=1 8=2 11{1=1 2'e'} 13{1'0123456789abcdef'} 15{2'm' 3:1}}}}",
};

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_seed(const char *folder, size_t i, const void *data, size_t len)
{
	AUTO_FCLOSE FILE *f = NULL;
	char path[4096];

	snprintf(path, sizeof(path), "%s/seed-%zu", folder, i);
	f = fopen(path, "wb");
	if (f)
		fwrite(data, 1, len, f);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *folder = *argc > 1 && (*argv)[1][0] != '-' ? (*argv)[1] : NULL;

	for (size_t i = 0; folder && i < ARRAY_LEN(seeds); i++) {
		AUTO(buf_fini) struct buf b = BUF_EMPTY, json = BUF_EMPTY;
		struct otlp_error err;
		struct profiles *p;

		bytes_fields(seeds[i], &b);
		REQUIRE(otlp_decode(b.data, b.len, false, &p, &err) == 0);
		REQUIRE(otlp_json_encode(p, &json) == 0);
		write_seed(folder, i, json.data, json.len);
		profiles_put(p);
	}
	if (folder)
		write_seed(folder, ARRAY_LEN(seeds), plain_seed, sizeof(plain_seed) - 1);
	for (size_t i = 0; folder && i < ARRAY_LEN(other_seeds); i++) {
		AUTO(buf_fini) struct buf b = BUF_EMPTY, json = BUF_EMPTY;
		struct otlp_error err;
		struct otlp_other o;

		bytes_fields(other_seeds[i], &b);
		REQUIRE(otlp_other_decode((enum otlp_signal)i, false, b.data, b.len, &o, &err) == 0);
		REQUIRE(otlp_other_json_encode(&o, &json) == 0);
		write_seed(folder, 10 + 2 * i, b.data, b.len);
		write_seed(folder, 11 + 2 * i, json.data, json.len);
		otlp_other_fini(&o);
	}
	return 0;
}

static void check_other(enum otlp_signal signal, bool is_json, const uint8_t *data, size_t size)
{
	AUTO(buf_fini) struct buf once = BUF_EMPTY, json = BUF_EMPTY, twice = BUF_EMPTY;
	struct otlp_other o, again;
	struct otlp_error err;
	int r = otlp_other_decode(signal, is_json, data, size, &o, &err);

	REQUIRE(r == 0 || (r == -EBADMSG && err.message[0]));
	if (r)
		return;
	REQUIRE(otlp_other_encode(&o, &once) == 0 && otlp_other_json_encode(&o, &json) == 0);
	REQUIRE(otlp_other_decode(signal, true, json.data, json.len, &again, &err) == 0);
	REQUIRE(again.items == o.items && otlp_other_encode(&again, &twice) == 0);
	/* JSON knows one NaN. */
	REQUIRE(strstr(buf_text(&json), "NaN") ||
		(once.len == twice.len && (!once.len || memcmp(once.data, twice.data, once.len) == 0)));
	otlp_other_fini(&again);
	otlp_other_fini(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(buf_fini) struct buf once = BUF_EMPTY, twice = BUF_EMPTY;
	uint8_t *copy = malloc(size ? size : 1); /* so that a read behind its end is seen */
	struct profiles *p, *again;
	struct otlp_error err;
	int r;

	memcpy(copy, data, size);
	for (enum otlp_signal signal = OTLP_LOGS; signal <= OTLP_TRACES; signal++)
		check_other(signal, size && (data[0] == '{' || data[0] == ' '), copy, size);
	r = otlp_json_decode(copy, size, &p, &err);
	free(copy);
	REQUIRE(r == 0 || (r == -EBADMSG && err.message[0]));
	if (r)
		return 0;
	REQUIRE(otlp_json_encode(p, &once) == 0);
	REQUIRE(otlp_json_decode(once.data, once.len, &again, &err) == 0);
	REQUIRE(again->resource_count == p->resource_count && again->sample_events == p->sample_events);
	REQUIRE(otlp_json_encode(again, &twice) == 0);
	REQUIRE(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
	profiles_put(again);
	profiles_put(p);
	return 0;
}
