/* SPDX-License-Identifier: Apache-2.0 */
/* Runs where an AppImage is made: writes what stands behind its squashfs, which is standard input, to standard output. */
#include <stdlib.h>

#include "hash.h"

int main(void)
{
	char name[HASH_DIGITS + 1], *bytes = NULL, *more;
	size_t len = 0, room = 0, n = 1;

	while (n) {
		if (len == room) {
			room = room ? 2 * room : 1 << 20;
			more = realloc(bytes, room);
			if (!more)
				return 1;
			bytes = more;
		}
		n = fread(bytes + len, 1, room - len, stdin);
		len += n;
	}
	if (ferror(stdin))
		return 1;
	hash_text(bytes, len, name);
	free(bytes);
	return printf("%s%s\n", HASH_MARK, name) < 0 || fflush(stdout);
}
