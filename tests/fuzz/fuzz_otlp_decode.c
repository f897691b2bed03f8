/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OTLP decoder on arbitrary bytes, in any layout. A message that it accepts must come through encoding unchanged,
 * and through splitting without a loss; what it refuses must have a reason. Seeds are written into the corpus folder at
 * start, so that none lie in git.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "proto/otlp/otlp.h"
#include "tests/fuzz/otlp_accepted.h"
#include "tests/unit/proto/otlp_bytes.h"

static const char *const seeds[] = {
	bytes_rich,
	"1{2{2{2{1:1 2:2 3[1] 5=7}}}} 2{6{} 7{}}",
	"2{5'' 5'a'} 1{1{1{3:1 2{8:1}}}} 2{5'b' 3{1:2}}",
	"1{1{1{2{5{1{6{1{1'k' 2{5{}}}}} 1{4=1}}}}}}",
	"1{2{2{1{1:1 3:1} 2{1:1 2[5] 3[1] 4:1} 3=5 7[1] 8'0123456789abcdef' 12[1]}}}2{4{} 4{} 5'' 5'a' 6{} 6{} 7{} 7{}}",
	"1{2{2{1{1:1} 1{2:1} 2{2:2 3[7 8] 4[0] 5:0 6[9 9]} 3[0 1] 5:6 8[1] 14[0]}}}2{1{5[0] 6:1} 2{1:0 3{1:0} 4:1} 2{} 3{} "
	"4{}"
	" 5'' 5'k' 6{1'k'} 7{1:1 2:1}}",
};

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *folder = *argc > 1 && (*argv)[1][0] != '-' ? (*argv)[1] : NULL;

	for (size_t i = 0; folder && i < ARRAY_LEN(seeds); i++) {
		AUTO_FCLOSE FILE *f = NULL;
		struct buf b = BUF_EMPTY;
		char path[4096];

		bytes_fields(seeds[i], &b);
		snprintf(path, sizeof(path), "%s/seed-%zu", folder, i);
		f = fopen(path, "wb");
		if (f)
			fwrite(b.data, 1, b.len, f);
		buf_fini(&b);
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);
	bool own = size & 1;
	struct otlp_error err;
	struct profiles *p;
	int r;

	memcpy(copy, data, size);
	r = otlp_decode(copy, size, own, &p, &err);
	REQUIRE(r == 0 || (r == -EBADMSG && err.message[0]));
	if (r == 0) {
		profiles_put(check_accepted(p));
		profiles_put(p);
	}
	if (r != 0 || !own)
		free(copy);
	return 0;
}
