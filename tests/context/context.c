/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A writer of contexts of threads (OTEP 4947) and of the process (OTEP 4719), as programs have one in a library, or in
 * themselves. By which model of TLS its code reaches the thread's variable is the compiler's options' choice.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

struct record {
	uint8_t trace[16], span[8], valid, flags;
	uint16_t bytes;
	uint8_t attributes[612];
} __attribute__((packed, aligned(2)));

__attribute__((visibility("default"))) __thread struct record *otel_thread_ctx_v1;
static __thread struct record own;

__attribute__((visibility("default"))) void context_enter(int thread, int kind, uint64_t number)
{
	char text[32];
	struct record *r = &own;
	int n;

	if (otel_thread_ctx_v1)
		r->valid = 0;
	__asm__ volatile("" ::: "memory");
	memset(r->trace, 0, sizeof(r->trace));
	r->trace[15] = (uint8_t)(thread + 1);
	for (int i = 0; i < 6; i++)
		r->span[i] = (uint8_t)((number + 1) >> (8 * (5 - i)));
	r->span[6] = (uint8_t)thread;
	r->span[7] = (uint8_t)kind;
	r->flags = 1;
	n = snprintf(text, sizeof(text), "work%d", kind);
	r->attributes[0] = 0; /* "kind" */
	r->attributes[1] = (uint8_t)n;
	memcpy(&r->attributes[2], text, (size_t)n);
	r->attributes[2 + n] = 2; /* a key that is published later */
	r->attributes[3 + n] = 1;
	r->attributes[4 + n] = 'x';
	r->bytes = (uint16_t)(5 + n);
	otel_thread_ctx_v1 = r;
	__asm__ volatile("" ::: "memory");
	r->valid = 1;
}

/* One way of two to say that there is no span. */
__attribute__((visibility("default"))) void context_leave(int by_pointer)
{
	own.valid = 0;
	if (by_pointer)
		otel_thread_ctx_v1 = NULL;
}

/* --- the process --- */

/* Appends a field of a message: its number, and @len bytes. */
static size_t put(uint8_t *to, size_t at, int field, const void *bytes, size_t len)
{
	to[at++] = (uint8_t)(field << 3 | 2);
	to[at++] = (uint8_t)(len & 0x7f) | 0x80;
	to[at++] = (uint8_t)(len >> 7);
	memcpy(to + at, bytes, len);
	return at + len;
}

/* Appends KeyValue @field: @key, and an AnyValue of @len bytes. */
static size_t put_key_value(uint8_t *to, size_t at, int field, const char *key, const void *value, size_t len)
{
	uint8_t kv[1024];
	size_t n = put(kv, 0, 1, key, strlen(key));

	n = put(kv, n, 2, value, len);
	return put(to, at, field, kv, n);
}

static size_t put_text(uint8_t *to, size_t at, int field, const char *key, const char *text)
{
	uint8_t value[256];
	size_t n = put(value, 0, 1, text, strlen(text));

	return put_key_value(to, at, field, key, value, n);
}

/* The message ProcessContext. */
static size_t make_payload(uint8_t *to, const char *version, int keys)
{
	static const char *const names[] = { "kind", "unused", "late" };
	uint8_t resource[512], array[512], value[600], text[64];
	size_t at = put_text(resource, 0, 1, "service.name", "spans-service"), n = 0, len;

	at = put_text(resource, at, 1, "service.version", version);
	at = put_text(resource, at, 1, "host.name", "what-the-sdk-thinks");
	for (int i = 0; i < keys; i++) {
		len = put(text, 0, 1, names[i], strlen(names[i]));
		n = put(array, n, 1, text, len);
	}
	n = put(value, 0, 5, array, n);
	len = put(to, 0, 1, resource, at);
	len = put_text(to, len, 2, "threadlocal.schema_version", "tlsdesc_v1_dev");
	return put_key_value(to, len, 2, "threadlocal.attribute_key_map", value, n);
}

/* Publishes, or publishes anew. */
__attribute__((visibility("default"))) void context_publish(const char *version, int keys, int by_name)
{
	static uint8_t *mapping, payloads[2][4096];
	static int turn;
	struct timespec now;
	uint64_t none = 0, stamp;
	uint32_t head[2] = { 2, 0 };
	uint8_t *payload = payloads[turn++ % 2];
	int fd;

	if (!mapping && by_name) {
		mapping = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	} else if (!mapping) {
		fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, 4096))
			exit(3);
		mapping = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
		close(fd);
	}
	if (mapping == MAP_FAILED)
		exit(3);
	head[1] = (uint32_t)make_payload(payload, version, keys);
	memcpy(mapping + 16, &none, sizeof(none));
	__asm__ volatile("" ::: "memory");
	clock_gettime(CLOCK_BOOTTIME, &now);
	stamp = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	memcpy(mapping, "OTEL_CTX", 8);
	memcpy(mapping + 8, head, sizeof(head));
	memcpy(mapping + 24, &payload, sizeof(payload));
	__asm__ volatile("" ::: "memory");
	memcpy(mapping + 16, &stamp, sizeof(stamp));
#ifdef PR_SET_VMA
	(void)prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, mapping, 4096, "OTEL_CTX");
#endif
}
