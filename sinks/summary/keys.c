/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acts on keys pressed in the summary. Keys come as a terminal in raw mode sends them: characters, and the sequences of
 * ECMA-48 and of xterm for the others, each whole in one read (the rest of a split one is characters that do nothing).
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "sinks/summary/state.h"

enum key {
	KEY_ESCAPE = 27,
	KEY_UP = 256,
	KEY_DOWN,
	KEY_PAGE_UP,
	KEY_PAGE_DOWN,
	KEY_HOME,
	KEY_END,
	KEY_RIGHT,
	KEY_LEFT,
	KEY_OTHER
};

static const struct {
	const char *sequence;
	enum key key;
} sequences[] = {
	{ "[A", KEY_UP },   { "[B", KEY_DOWN },	 { "[C", KEY_RIGHT }, { "[D", KEY_LEFT },     { "OA", KEY_UP },
	{ "OB", KEY_DOWN }, { "OC", KEY_RIGHT }, { "OD", KEY_LEFT },  { "[5~", KEY_PAGE_UP }, { "[6~", KEY_PAGE_DOWN },
	{ "[H", KEY_HOME }, { "[F", KEY_END },	 { "OH", KEY_HOME },  { "OF", KEY_END },      { "[1~", KEY_HOME },
	{ "[4~", KEY_END }, { "[7~", KEY_HOME }, { "[8~", KEY_END },
};

/* The key at @bytes; how many of them it takes into @used. */
static int read_key(const char *bytes, size_t len, size_t *used)
{
	*used = 1;
	if (bytes[0] != KEY_ESCAPE || len == 1 || (bytes[1] != '[' && bytes[1] != 'O'))
		return (unsigned char)bytes[0];
	for (size_t i = 0; i < ARRAY_LEN(sequences); i++) {
		size_t size = strlen(sequences[i].sequence);

		if (len > size && !memcmp(bytes + 1, sequences[i].sequence, size)) {
			*used = 1 + size;
			return sequences[i].key;
		}
	}
	/* Another key: parameters, then one letter (ECMA-48, 5.4). */
	for (*used = 2; *used < len && (unsigned char)bytes[*used] >= 0x20 && (unsigned char)bytes[*used] < 0x40; (*used)++)
		;
	*used += *used < len;
	return KEY_OTHER;
}

static void type_filter(struct summary *s, int key)
{
	size_t len = strlen(s->filter);

	if (key == KEY_ESCAPE) {
		s->filter[0] = '\0';
		s->is_typing = false;
	} else if (key == '\r' || key == '\n') {
		s->is_typing = false;
	} else if (key == 0x7f || key == '\b') {
		while (len && ((unsigned char)s->filter[len - 1] & 0xc0) == 0x80) /* a character, not a byte */
			len--;
		s->filter[len ? len - 1 : 0] = '\0';
	} else if (key == 21) { /* Ctrl-U */
		s->filter[0] = '\0';
	} else if (key >= ' ' && key < 256 && len + 1 < sizeof(s->filter)) {
		s->filter[len] = (char)key;
		s->filter[len + 1] = '\0';
	}
	s->selected = s->first = 0;
}

static void move(struct summary *s, int64_t by)
{
	int64_t to = (int64_t)s->selected + by;

	s->is_followed = false;
	s->selected = to < 0 || !s->row_cnt ? 0 : to >= s->row_cnt ? s->row_cnt - 1 : (uint32_t)to;
}

static void show(struct summary *s, enum summary_show what)
{
	s->show = what;
	s->selected = s->first = 0;
	(void)summary_expand(s, NULL);
}

static void sort(struct summary *s, enum summary_sort by)
{
	s->sort = by;
	s->is_followed = false;
	s->selected = s->first = 0;
}

static int expand(struct summary *s, int key)
{
	const struct top_row *row = s->selected < s->row_cnt ? &s->rows[s->selected] : NULL;
	bool is_open = row && summary_is_expanded(s, row);

	if (!row || (key == KEY_LEFT && !s->is_expanded) || (key == KEY_RIGHT && is_open))
		return 0;
	s->is_followed = true;
	return summary_expand(s, key == KEY_LEFT || is_open ? NULL : row);
}

static void begin_anew(struct summary *s)
{
	for (int i = 0; i < SHOW_COUNT; i++)
		top_reset(s->tops[i]);
	top_reset(s->by_owner);
	summary_drop_profiles(&s->now);
	s->now = (struct summary_shown){ 0 };
}

/* On to the next kind of samples, behind the last to the first. 0 or -ENOMEM. */
static int next_kind(struct summary *s)
{
	const char *const *kinds = s->options.kinds, *const *next = kinds;

	if (!kinds || !kinds[0] || !kinds[1])
		return 0;
	while (*next && strcmp(s->kind ? s->kind : kinds[0], *next) != 0)
		next++;
	next = *next && next[1] ? next + 1 : kinds;
	begin_anew(s);
	return summary_choose_kind(s, *next) || summary_freeze(s, false) ? -ENOMEM : 0;
}

static void press_letter(struct summary *s, int key)
{
	switch (key) {
	case 'f':
		show(s, SHOW_FUNCTIONS);
		break;
	case 'm':
		show(s, SHOW_MODULES);
		break;
	case 'p':
		show(s, SHOW_PROCESSES);
		break;
	case '\t':
		show(s, (s->show + 1) % SHOW_COUNT);
		break;
	case 's':
		sort(s, SORT_SELF);
		break;
	case 't':
		sort(s, SORT_TOTAL);
		break;
	case 'o':
		sort(s, SORT_OVERALL);
		break;
	case 'n':
		sort(s, SORT_NAME);
		break;
	case 'r':
		s->is_reversed = !s->is_reversed;
		break;
	case '/':
		s->is_typing = true;
		break;
	case '?':
	case 'h':
		s->shows_help = !s->shows_help;
		break;
	default:
		break;
	}
}

/* 0 or -ENOMEM. */
static int press(struct summary *s, int key)
{
	switch (key) {
	case KEY_UP:
	case 'k':
		move(s, -1);
		return 0;
	case KEY_DOWN:
	case 'j':
		move(s, 1);
		return 0;
	case KEY_PAGE_UP:
		move(s, -(int64_t)s->page);
		return 0;
	case KEY_PAGE_DOWN:
		move(s, s->page);
		return 0;
	case KEY_HOME:
	case 'g':
		move(s, INT32_MIN);
		return 0;
	case KEY_END:
	case 'G':
		move(s, INT32_MAX);
		return 0;
	case '\r':
	case '\n':
	case KEY_RIGHT:
	case KEY_LEFT:
		return expand(s, key);
	case KEY_ESCAPE:
		s->filter[0] = '\0';
		s->shows_help = false;
		return 0;
	case 'z':
	case ' ':
		return summary_freeze(s, !s->is_frozen) || summary_refresh_expanded(s) ? -ENOMEM : 0;
	case 'w':
		return next_kind(s);
	case 'c':
		begin_anew(s);
		return summary_freeze(s, false) || summary_refresh_expanded(s) ? -ENOMEM : 0;
	default:
		press_letter(s, key);
		return 0;
	}
}

int sink_summary_keys(struct sink *sink, const char *bytes, size_t len, bool *quit_ret)
{
	struct summary *s = (struct summary *)sink;
	size_t used;
	int err = 0;

	*quit_ret = false;
	for (size_t i = 0; i < len && !err; i += used) {
		int key = read_key(bytes + i, len - i, &used);

		if (s->is_typing)
			type_filter(s, key);
		else if (key == 'q' || key == 4) /* Ctrl-D */
			*quit_ret = true;
		else
			err = press(s, key);
		if (!err && !*quit_ret)
			err = summary_make_rows(s); /* for the next key */
	}
	return err ? err : sink_summary_redraw(sink);
}
