/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "agent/runtime/choice.h"
#include "base/buf.h"
#include "base/cleanup.h"

#define X(word, bits, with) { word, bits, with },
static const struct runtime_word words[] = { RUNTIME_WORDS(X) };
#undef X

const char *runtime_own_word(uint32_t id)
{
	for (size_t i = 0; id < 32 && i < ARRAY_LEN(words); i++)
		if (words[i].bits == RUNTIME_BIT(id))
			return words[i].word;
	return "";
}

const struct runtime_word *runtime_words(size_t *count_ret)
{
	*count_ret = ARRAY_LEN(words);
	return words;
}

static const struct runtime_word *find(const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (!strcmp(words[i].word, word))
			return &words[i];
	return NULL;
}

int runtime_choose(const char *text, bool is_first, uint32_t *off)
{
	bool is_away = text[0] == '-', is_all = !strcmp(text, "all");
	const struct runtime_word *word;

	if (is_first)
		*off = is_away ? 0 : UINT32_MAX;
	if (is_all || !strcmp(text, "none")) {
		*off = is_all ? 0 : UINT32_MAX;
		return 0;
	}
	word = find(text + is_away);
	if (!word)
		return -ENOENT;
	if (is_away)
		*off |= word->bits;
	else
		*off &= ~(word->bits | word->with);
	return 0;
}

void runtime_words_print(struct buf *out)
{
	size_t start = out->len;

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (words[i].bits | words[i].with)
			buf_printf(out, "%s%s", out->len > start ? ", " : "", words[i].word);
}
