/* SPDX-License-Identifier: Apache-2.0 */
/* Text that people write, into numbers. All return 0, -EINVAL (not such a thing), or -ERANGE (too large); *ret is untouched
 * on failure. The whole text must be used up. */
#ifndef HEARTH_BASE_TEXT_PARSE_H
#define HEARTH_BASE_TEXT_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decimal, no sign, no leading or trailing space. */
int parse_u64(const char *text, uint64_t *ret);

/* "5s", "250ms", "1.5m", "2h", "7d", "100us", "10ns"; a bare number is seconds. */
int parse_duration(const char *text, uint64_t *ns_ret);

/* "4096", "64K", "4MiB", "2G", "10kb": powers of 1024 whatever the letters say, as ls and dd do. */
int parse_size(const char *text, uint64_t *bytes_ret);

/* "true/yes/on/1", "false/no/off/0", any case. */
int parse_bool(const char *text, bool *ret);

/* Whether @text, which may be NULL, has a control character, which must not get into headers and messages. */
bool parse_has_control(const char *text);

#endif
