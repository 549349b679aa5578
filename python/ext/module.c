/* SPDX-License-Identifier: MIT */
/* Defines the module: its types, the members of the configuration, and how
 * errors become exceptions. Global variables are set once, when the module is
 * imported. */
#include "ext_impl.h"

#include <errno.h>

PyObject *batch_type, *view_type, *column_type, *loader_type, *echo_type;

/* function of refrain._errors that makes an exception */
static PyObject *error_factory;
static PyObject *numpy_asarray; /* numpy.asarray; NULL until it is needed */

/* -- Exceptions ------------------------------------------------------------ */

static const char *const stages[REFRAIN_STAGES] = {
	[REFRAIN_STAGE_READ] = "read",
	[REFRAIN_STAGE_DECODE] = "decode",
	[REFRAIN_STAGE_AUGMENT] = "augment",
	[REFRAIN_STAGE_TRAINER] = "trainer",
};

/* Raise the exception for an error. Steals the reference `path`, which may be
 * NULL with an exception set. */
static PyObject *raise_with(int rc, const char *message, PyObject *path,
	const char *stage, PyObject *step, PyObject *cause)
{
	PyObject *exception = NULL;

	if (path && step && error_factory)
		exception = PyObject_CallFunction(error_factory, "iNOzO", -rc,
			PyUnicode_DecodeFSDefault(message), path, stage, step);
	Py_XDECREF(path);
	Py_XDECREF(step);
	if (!exception)
		return NULL;
	Py_XINCREF(cause);
	PyException_SetCause(exception, cause);
	PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
	Py_DECREF(exception);
	return NULL;
}

static PyObject *none(void)
{
	Py_INCREF(Py_None);
	return Py_None;
}

PyObject *raise_error(struct core *core, int rc, const char *message)
{
	struct refrain_failure failure = {.size = sizeof(failure)};
	const char *path;

	if (!core || !core->l || refrain_failure_get(core->l, &failure) <= 0)
		return raise_with(rc, message, none(), NULL, none(),
			core ? core->cause : NULL);
	path = refrain_path(core->l, failure.index);
	return raise_with(rc, message,
		path ? PyUnicode_DecodeFSDefault(path) : none(),
		stages[failure.stage],
		PyLong_FromUnsignedLongLong(failure.step), core->cause);
}

PyObject *raise_open(int rc, const char *message, PyObject *path)
{
	Py_INCREF(path);
	return raise_with(rc, message, path, "open", none(), NULL);
}

static PyObject *set_error_factory(PyObject *self, PyObject *factory)
{
	(void)self;
	Py_INCREF(factory);
	Py_XDECREF(error_factory);
	error_factory = factory;
	Py_RETURN_NONE;
}

/* -- NumPy ----------------------------------------------------------------- */

PyObject *as_array(PyObject *object)
{
	PyObject *numpy, *array;

	if (!object)
		return NULL;
	if (!numpy_asarray) {
		numpy = PyImport_ImportModule("numpy");
		if (numpy)
			numpy_asarray =
				PyObject_GetAttrString(numpy, "asarray");
		Py_XDECREF(numpy);
	}
	array = numpy_asarray
		? PyObject_CallFunctionObjArgs(numpy_asarray, object, NULL)
		: NULL;
	Py_DECREF(object);
	return array;
}

/* -- Members --------------------------------------------------------------- */

static const char *const types[] = {
	[REFRAIN_MEMBER_NUMBER] = "number",
	[REFRAIN_MEMBER_REAL] = "real",
	[REFRAIN_MEMBER_ECHO] = "echo",
	[REFRAIN_MEMBER_BYTES] = "bytes",
	[REFRAIN_MEMBER_WORD] = "word",
	[REFRAIN_MEMBER_FLAG] = "flag",
	[REFRAIN_MEMBER_SIDES] = "sides",
	[REFRAIN_MEMBER_TEXT] = "text",
};

static const char *type_name(int32_t type)
{
	size_t n = sizeof(types) / sizeof(*types);

	return type >= 0 && (size_t)type < n ? types[type] : "text";
}

static PyObject *members(PyObject *self, PyObject *unused)
{
	struct refrain_member m = {.size = sizeof(m)};
	PyObject *list = PyList_New(0);

	(void)self;
	(void)unused;
	for (uint32_t i = 0; list && refrain_config_member(i, &m) > 0; i++) {
		PyObject *row = Py_BuildValue("(sszsI)", m.name,
			type_name(m.type), m.arg, m.help, m.count);

		if (!row || PyList_Append(list, row) < 0)
			Py_CLEAR(list);
		Py_XDECREF(row);
	}
	return list;
}

static PyObject *version(PyObject *self, PyObject *unused)
{
	(void)self;
	(void)unused;
	return PyLong_FromLong(refrain_version());
}

/* -- The module ------------------------------------------------------------ */

static PyMethodDef methods[] = {
	{"members", members, METH_NOARGS,
		"Members of the configuration: (name, type, argument, help, "
		"count) each."},
	{"version", version, METH_NOARGS,
		"The version of the library: major * 10000 + minor * 100 + "
		"patch."},
	{"_set_error_factory", set_error_factory, METH_O,
		"Set the function that makes an exception of an errno."},
	{NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "_refrain",
	.m_doc = "The loader of librefrain.",
	.m_size = -1,
	.m_methods = methods,
};

static int add_type(
	PyObject *module, const char *name, PyType_Spec *spec, PyObject **out)
{
	*out = PyType_FromSpec(spec);
	if (!*out)
		return -1;
	Py_INCREF(*out);
	return PyModule_AddObject(module, name, *out);
}

PyMODINIT_FUNC PyInit__refrain(void);

PyMODINIT_FUNC PyInit__refrain(void)
{
	PyObject *module = PyModule_Create(&definition);

	if (module &&
		(add_type(module, "Loader", &loader_spec, &loader_type) < 0 ||
			add_type(module, "Batch", &batch_spec, &batch_type) <
				0 ||
			add_type(module, "View", &view_spec, &view_type) < 0 ||
			add_type(module, "Column", &column_spec, &column_type) <
				0 ||
			add_type(module, "Echo", &echo_spec, &echo_type) < 0))
		Py_CLEAR(module);
	return module;
}
