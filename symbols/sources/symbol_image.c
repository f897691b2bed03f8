/* SPDX-License-Identifier: Apache-2.0 */
/* The files are only mapped; nothing is read here. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "symbols/sources/symbol_image.h"

int symbol_image_map(int fd, struct symbol_image *ret)
{
	struct stat st;
	void *data;

	*ret = (struct symbol_image){ 0 };
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0)
		return -ENOEXEC;
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	*ret = (struct symbol_image){ data, (size_t)st.st_size };
	return 0;
}

void symbol_image_unmap(struct symbol_image *image)
{
	if (image->data)
		munmap((void *)image->data, image->len_bytes);
	*image = (struct symbol_image){ 0 };
}
