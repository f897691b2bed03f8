/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "agent/process/processes.h"
#include "agent/samples/wakers.h"
#include "base/map.h"
#include "base/vec.h"

struct wakers {
	struct waker *list; /* owned */
	uint32_t count, cap;
	struct map by_waking; /* key() -> number + 1 */
};

struct wakers *wakers_new(void)
{
	return calloc(1, sizeof(struct wakers));
}

void wakers_reset(struct wakers *w)
{
	for (uint32_t i = 0; i < w->count; i++)
		process_put(w->list[i].process);
	w->count = 0;
	map_fini(&w->by_waking);
}

void wakers_free(struct wakers *w)
{
	if (!w)
		return;
	wakers_reset(w);
	free(w->list);
	free(w);
}

/* Two wakings that share a key, of which one would not be found, would be nanoseconds apart by the same as their threads'
 * numbers are. */
static uint64_t key(uint32_t tid, uint64_t woken_ns)
{
	return woken_ns ^ (uint64_t)tid << 40;
}

int wakers_add(struct wakers *w, const struct waker *waker)
{
	if (vec_reach(&w->list, &w->cap, w->count) ||
	    map_put(&w->by_waking, key(waker->woken_tid, waker->woken_ns), (void *)(uintptr_t)(w->count + 1)))
		return -ENOMEM;
	w->list[w->count++] = *waker;
	return 0;
}

uint32_t wakers_use(struct wakers *w, uint32_t tid, uint64_t woken_ns)
{
	uintptr_t known = (uintptr_t)map_get(&w->by_waking, key(tid, woken_ns));
	struct waker *waker = known ? &w->list[known - 1] : NULL;

	if (!waker || waker->is_used || waker->woken_tid != tid || waker->woken_ns != woken_ns)
		return UINT32_MAX;
	waker->is_used = true;
	return (uint32_t)(known - 1);
}

uint32_t wakers_count(const struct wakers *w)
{
	return w->count;
}

const struct waker *wakers_get(const struct wakers *w, uint32_t number)
{
	return &w->list[number];
}

size_t wakers_memory_bytes(const struct wakers *w)
{
	return sizeof(*w) + w->cap * sizeof(*w->list) + map_memory_bytes(&w->by_waking);
}
