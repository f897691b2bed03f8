/* SPDX-License-Identifier: Apache-2.0 */
/* Field 22 is counted from the last parenthesis, as the name in parentheses may have any characters. */
#include "base/text/stat_start.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_FIELD = 2, START_FIELD = 22 };

int stat_start_ticks(const char *text, uint64_t *ticks_ret)
{
	const char *at = strrchr(text, ')');
	char *end;
	uint64_t ticks;

	for (int field = NAME_FIELD; at && field < START_FIELD; field++)
		at = strchr(at + 1, ' ');
	if (!at || !isdigit((unsigned char)at[1]))
		return -EBADMSG;
	errno = 0;
	ticks = strtoull(at + 1, &end, 10);
	if (errno || *end != ' ') /* more fields follow: a number that ends the text was cut */
		return -EBADMSG;
	*ticks_ret = ticks;
	return 0;
}
