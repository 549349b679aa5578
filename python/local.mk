# The Python package: the extension module on the public headers alone, and the
# package around it as tests import it, in python/pkg. Users install it by pip
# (doc/python.md).
python_ext = python/ext/batch.c python/ext/callback.c \
	python/ext/column.c python/ext/core.c python/ext/dlpack.c \
	python/ext/echo.c python/ext/ext_impl.h python/ext/loader.c \
	python/ext/module.c python/ext/open.c python/ext/view.c
python_package = python/refrain/__init__.py python/refrain/__init__.pyi \
	python/refrain/_columns.py python/refrain/_echo.py \
	python/refrain/_errors.py python/refrain/_loader.py \
	python/refrain/_refrain.pyi python/refrain/_values.py \
	python/refrain/plan.py python/refrain/plan.pyi \
	python/refrain/py.typed python/refrain/torch.py \
	python/refrain/torch.pyi
EXTRA_DIST += $(python_ext) $(python_package) python/MANIFEST.in \
	python/archive.c \
	python/pyproject.toml python/setup.py

if HAVE_PYTHON
noinst_LTLIBRARIES += python/_refrain.la
python__refrain_la_SOURCES = $(python_ext)
python__refrain_la_CPPFLAGS = -I$(srcdir)/include $(PYTHON_CPPFLAGS) \
	-D_GNU_SOURCE
# The API of Python takes char * for texts that it does not write to.
python__refrain_la_CFLAGS = $(AM_CFLAGS) -Wno-write-strings -Wno-undef
python__refrain_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared \
	-rpath /nowhere
python__refrain_la_LIBADD = librefrain.la

all-local: python/pkg.stamp
python/pkg.stamp: python/_refrain.la $(python_package)
	$(AM_V_GEN)$(MKDIR_P) python/pkg/refrain && \
	for f in $(python_package); do \
		ln -sf "$(abs_srcdir)/$$f" python/pkg/refrain/ || exit 1; \
	done && \
	ln -sf ../../.libs/_refrain.so \
		'python/pkg/refrain/_refrain$(PYTHON_SUFFIX)' && \
	touch $@
CLEANFILES += python/pkg.stamp

clean-local:
	rm -rf python/pkg python/asan python/wheel
endif

# A wheel for any Linux with glibc 2.36 or later, which needs no other library:
# python/wheel/*.whl. tests/system/package-wheel.sh checks that.
if ENABLE_STATIC
if HAVE_PYTHON
wheel: librefrain.a
	rm -rf python/wheel && $(MKDIR_P) python/wheel && \
	cp -R '$(srcdir)/python' python/wheel/tree && \
	chmod -R u+w python/wheel/tree && cd python/wheel/tree && \
	REFRAIN_ARCHIVE='$(abs_builddir)/librefrain.a' \
	CFLAGS='-O2 -I$(abs_srcdir)/include' \
	'$(PYTHON)' setup.py -q bdist_wheel -d .. \
		--plat-name "manylinux_2_36_$$(uname -m)" && \
	cd .. && rm -r tree
endif
endif

# The extension alone under AddressSanitizer, with the library as it is, and its
# tests.
if HAVE_PYTHON
check-python-asan: python/pkg.stamp
	rm -rf python/asan && cp -R python/pkg python/asan
	rm 'python/asan/refrain/_refrain$(PYTHON_SUFFIX)'
	cd '$(srcdir)' && $(CC) -shared -fPIC -std=c11 -O1 -g \
		-fsanitize=address,undefined -fno-sanitize-recover=undefined \
		-Iinclude $(PYTHON_CPPFLAGS) -D_GNU_SOURCE \
		python/ext/*.c -L'$(abs_builddir)/.libs' \
		-lrefrain -o "$$OLDPWD/python/asan/refrain/_refrain"
	cd python/asan/refrain && mv _refrain '_refrain$(PYTHON_SUFFIX)'
	srcdir='$(srcdir)' REFRAIN_TEST_PACKAGE=python/asan \
		CK_TIMEOUT_MULTIPLIER=10 \
		$(SHELL) '$(srcdir)/tests/system/python-package.sh'
endif

.PHONY: check-python-asan wheel
