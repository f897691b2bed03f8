/* SPDX-License-Identifier: Apache-2.0 */
#include "enrich/known/texts.h"

#include "base/text/utf8.h"

uint32_t texts_add(struct buf *texts, const char *data, size_t len)
{
	size_t begin, most = len < TEXT_MAX_BYTES ? len : TEXT_MAX_BYTES;

	if (!len || texts->len + 3 * most + 2 > TEXTS_MAX_BYTES) /* a byte that is no UTF-8 becomes three */
		return 0;
	if (!texts->len)
		buf_putc(texts, '\0');
	begin = texts->len;
	utf8_append_clean(texts, data, most);
	if (texts->failed || texts->len == begin)
		return 0;
	texts->len = begin + utf8_cut(texts->data + begin, texts->len - begin, TEXT_MAX_BYTES);
	for (size_t i = begin; i < texts->len; i++)
		if (!texts->data[i]) /* a NUL within would end it */
			texts->len = i;
	buf_putc(texts, '\0');
	return texts->failed || texts->len - begin < 2 ? 0 : (uint32_t)begin;
}

const char *texts_at(const struct buf *texts, uint32_t offset)
{
	return offset && offset < texts->len ? (const char *)texts->data + offset : "";
}
