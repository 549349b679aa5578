/* SPDX-License-Identifier: MIT */
/*
 * Loads libspng; see png_lib_impl.h. Each decoder has its own reference to the
 * library, so this file has no state. Called by the decoder's thread.
 */
#include "loader/image/png_lib_impl.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

static const struct {
	const char *name;
	size_t at; /* offset in struct png_lib */
} functions[] = {
	{"spng_ctx_new", offsetof(struct png_lib, ctx_new)},
	{"spng_ctx_free", offsetof(struct png_lib, ctx_free)},
	{"spng_set_png_stream", offsetof(struct png_lib, set_png_stream)},
	{"spng_set_crc_action", offsetof(struct png_lib, set_crc_action)},
	{"spng_decode_image", offsetof(struct png_lib, decode_image)},
	{"spng_decode_scanline", offsetof(struct png_lib, decode_scanline)},
	{"spng_strerror", offsetof(struct png_lib, strerror)},
};

static int png_lib_fail(struct png_lib *lib, struct error *err)
{
	const char *why = dlerror();

	(void)error_set(err, -ELIBACC,
		"a PNG image needs libspng, which cannot be loaded: %s",
		why ? why : PNG_LIB_FILE);
	png_lib_close(lib);
	return -ELIBACC;
}

int png_lib_open(struct png_lib *lib, struct error *err)
{
	lib->handle = dlopen(PNG_LIB_FILE, RTLD_NOW | RTLD_LOCAL);
	if (!lib->handle)
		return png_lib_fail(lib, err);
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *p = dlsym(lib->handle, functions[i].name);

		if (!p)
			return png_lib_fail(lib, err);
		/* POSIX guarantees that the address of a function fits into a
		 * void *. */
		memcpy((char *)lib + functions[i].at, &p, sizeof(p));
	}
	return 0;
}

void png_lib_close(struct png_lib *lib)
{
	if (lib->handle)
		(void)dlclose(lib->handle); /* a failure cannot be handled */
	lib->handle = NULL;
}
