/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include "backend/store_sqlite_scan.h"
int store_export(struct store *s, const struct store_selection *sel, int (*fn)(void *arg, struct profiles *p), void *arg)
{
	(void)s;
	(void)sel;
	(void)fn;
	(void)arg;
	return -ENOSYS;
}
