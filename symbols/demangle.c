/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readable names by libiberty. C++ names come without parameter lists, as perf prints them; Rust names without their hash.
 * The mangling comes out of other people's files: libiberty bounds its recursion (it leaves C++ names of more than 1,024
 * characters alone for that reason), and here input and output are bounded too, since a short name may stand for an
 * exponentially long one. Nothing is kept; any thread.
 */
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "symbols/symbols.h"

enum { MAX_NAME_BYTES = 64 << 10 };

struct text {
	struct buf *out;
	size_t start; /* of the name in @out */
	jmp_buf too_long;
};

/* libiberty's printer cannot be told to stop; it holds its state on the stack, so it is left behind. */
static void append(const char *s, size_t len, void *arg)
{
	struct text *t = arg;

	if (t->out->len - t->start + len > MAX_NAME_BYTES)
		longjmp(t->too_long, 1);
	buf_append(t->out, s, len);
}

/* Where the suffixes of compiler-made copies (.cold, .part.0, .llvm.123) start: a '.' with nothing else behind it than they
 * have. */
static const char *find_clones(const char *mangled)
{
	const char *end = mangled + strlen(mangled), *found = end;

	for (const char *p = end; p > mangled && strchr(".0123456789_abcdefghijklmnopqrstuvwxyz", p[-1]); p--) {
		if (p[-1] == '.')
			found = p - 1;
	}
	return found;
}

/* As libiberty writes them behind a parameter list; without one it passes over them. */
static void append_clones(const char *p, struct buf *out)
{
	while (*p) {
		size_t len = 1 + strcspn(p + 1, ".");

		while (p[len] == '.' && p[len + 1] >= '0' && p[len + 1] <= '9')
			len += 1 + strcspn(p + len + 1, ".");
		buf_puts(out, " [clone ");
		buf_append(out, p, len);
		buf_putc(out, ']');
		p += len;
	}
}

static bool run(const char *mangled, struct buf *out)
{
	struct text t = { .out = out, .start = out->len };

	if (!setjmp(t.too_long)) {
		if (rust_demangle_callback(mangled, DMGL_NO_OPTS, append, &t) && out->len > t.start)
			return true;
		out->len = t.start;
		if (cplus_demangle_v3_callback(mangled, DMGL_NO_OPTS, append, &t) && out->len > t.start) {
			append_clones(find_clones(mangled), out);
			return true;
		}
	}
	out->len = t.start;
	return false;
}

void symbols_demangle(const char *name, size_t len, struct buf *out)
{
	bool is_mangled = len > 2 && len <= MAX_NAME_BYTES && name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
	AUTO_FREE char *text = is_mangled ? strndup(name, len) : NULL;

	if (!text || !run(text, out))
		buf_append(out, name, len);
}
