/* SPDX-License-Identifier: MIT */
/*
 * |The type from which refrain.Echo is made: an echo stage of refrain/echo.h
 * whose |source is an iterator. No signal handler runs between the moment when
 * the |iterator returns an example and the moment when the stage stores it. So
 * an |interrupted pull loses no example. The states of the stage: | |       new
 * --__init__--> no source --_attach()--> in an epoch --next()--> ended |
 * |_open() and _begin() lead back to `no source`. In that state, next() calls
 * |_prepare(), which attaches an iterator. But if an iterator has ended, or
 * |_begin() has left its epoch, next() raises StopIteration until iter() is
 * called.
 */
#include "ext_impl.h"

#include <errno.h>
#include <refrain/echo.h>

#define LOG_LINE_BYTES 32

struct stage {
	PyObject ob_base;
	struct refrain_echo *e; /* the library's stage; NULL: not opened */
	/* dict from the number of an example to the example, in order of the
	 * numbers */
	PyObject *window;
	PyObject *source;  /* iterator that gives examples, or NULL */
	PyObject *augment; /* function that augments an example, or NULL */
	PyObject *note;	   /* function that is called before a pull, or NULL */
	/* number of the example from which on `note` is called */
	uint64_t note_at;
	uint64_t pulled; /* number of the source's next example */
	bool seeded;	 /* the function `augment` takes a seed */
	bool failed;	 /* the source has raised an exception */
	bool drained;	 /* the source has given its last example */
	bool ended;
	/* an epoch was left before its end, so next() ends until iter() is
	 * called */
	bool stopped;
	bool inside; /* a thread is inside next() */
};

static struct stage *of(PyObject *object)
{
	struct stage *self = (struct stage *)object;

	if (self->e)
		return self;
	PyErr_SetString(PyExc_ValueError, "the stage was not opened");
	return NULL;
}

/* Returns the stage; or NULL with an exception if next() is running, because no
 * other method may change the stage during it. */
static struct stage *idle(PyObject *object)
{
	struct stage *self = (struct stage *)object;

	if (!self->inside)
		return self;
	PyErr_SetString(PyExc_ValueError,
		"another thread, the source or augment is in next()");
	return NULL;
}

static PyObject *none_or_raise(int rc)
{
	if (rc < 0)
		return raise_error(NULL, rc, refrain_message(NULL));
	Py_RETURN_NONE;
}

/* -- Opening --------------------------------------------------------------- */

static void drop_epoch(struct stage *self)
{
	self->ended = self->failed = self->drained = false;
	self->pulled = 0;
	Py_CLEAR(self->source);
	Py_CLEAR(self->note);
	if (self->window)
		PyDict_Clear(self->window);
}

/* _open(members, state, examples): open the library's stage. An earlier one is
 * closed. */
static PyObject *stage_open(PyObject *object, PyObject *args)
{
	struct stage *self = idle(object);
	struct refrain_config config;
	struct refrain_echo *e;
	PyObject *members, *state;
	unsigned long long examples;
	int rc;

	if (!self ||
		!PyArg_ParseTuple(args, "O!OK", &PyDict_Type, &members, &state,
			&examples))
		return NULL;
	refrain_config_init(&config);
	if (config_set_members(&config, members) < 0 ||
		config_set_state(&config, state) < 0)
		return NULL;
	rc = refrain_echo_open(&e, &config, examples);
	if (rc < 0)
		return raise_open(rc, refrain_message(NULL), Py_None);
	refrain_echo_close(self->e);
	self->e = e;
	self->stopped = false;
	drop_epoch(self);
	Py_RETURN_NONE;
}

static int stage_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"augment", "seeded", NULL};
	struct stage *self = idle(object);
	PyObject *augment;
	int seeded;

	if (!self ||
		!PyArg_ParseTupleAndKeywords(
			args, kwargs, "Op", names, &augment, &seeded))
		return -1;
	Py_CLEAR(self->augment);
	if (augment != Py_None) {
		Py_INCREF(augment);
		self->augment = augment;
	}
	self->seeded = seeded;
	if (!self->window)
		self->window = PyDict_New();
	return self->window ? 0 : -1;
}

static PyObject *stage_begin(PyObject *object, PyObject *args)
{
	struct stage *self = of(object);
	unsigned long long epoch;

	if (!self || !idle(object) || !PyArg_ParseTuple(args, "K", &epoch))
		return NULL;
	self->stopped = self->stopped || self->ended || self->source;
	drop_epoch(self);
	return none_or_raise(refrain_echo_begin(self->e, epoch));
}

/* _attach(iterator, at, note): set the source, whose next example has the
 * number `at`. */
static PyObject *stage_attach(PyObject *object, PyObject *args)
{
	struct stage *self = of(object);
	PyObject *source, *note;
	unsigned long long at;
	int rc;

	if (!self || !idle(object) ||
		!PyArg_ParseTuple(args, "OKO", &source, &at, &note))
		return NULL;
	rc = refrain_echo_from(self->e, at);
	if (rc < 0)
		return none_or_raise(rc);
	self->pulled = self->note_at = at;
	Py_INCREF(source);
	Py_XDECREF(self->source);
	self->source = source;
	self->stopped = false;
	Py_CLEAR(self->note);
	if (note != Py_None) {
		Py_INCREF(note);
		self->note = note;
	}
	Py_RETURN_NONE;
}

/* -- Life ------------------------------------------------------------------ */

static int stage_traverse(PyObject *object, visitproc visit, void *arg)
{
	struct stage *self = (struct stage *)object;

	Py_VISIT(Py_TYPE(object));
	Py_VISIT(self->window);
	Py_VISIT(self->source);
	Py_VISIT(self->augment);
	Py_VISIT(self->note);
	return 0;
}

static int stage_clear(PyObject *object)
{
	struct stage *self = (struct stage *)object;

	Py_CLEAR(self->window);
	Py_CLEAR(self->source);
	Py_CLEAR(self->augment);
	Py_CLEAR(self->note);
	return 0;
}

static void stage_dealloc(PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	PyObject_GC_UnTrack(object);
	(void)stage_clear(object);
	refrain_echo_close(((struct stage *)object)->e);
	release(object);
	Py_DECREF(type);
}

/* -- The next serving ------------------------------------------------------ */

/* Tell the object that stores states of the source which example is pulled
 * next. The function returns the number of the example at which it wants to be
 * told again. */
static int note_pull(struct stage *self, uint64_t example)
{
	PyObject *next;

	if (!self->note || example < self->note_at)
		return 0;
	next = PyObject_CallFunction(
		self->note, "K", (unsigned long long)example);
	if (!next)
		return -1;
	self->note_at = PyLong_AsUnsignedLongLong(next);
	Py_DECREF(next);
	return PyErr_Occurred() ? -1 : 0;
}

static int window_set(struct stage *self, uint64_t number, PyObject *example)
{
	PyObject *key = PyLong_FromUnsignedLongLong(number);
	int rc = key ? PyDict_SetItem(self->window, key, example) : -1;

	Py_XDECREF(key);
	return rc;
}

/* Open the source again, at the example whose pull has failed: a generator ends
 * when it raises an exception. Returns 1; or 0 if the source has no more
 * examples. */
static int open_again(struct stage *self)
{
	PyObject *source = PyObject_CallMethod((PyObject *)self, "_open_again",
		"OK", self->source, (unsigned long long)self->pulled);

	if (!source)
		return -1;
	self->failed = false;
	if (source == Py_None) {
		Py_DECREF(source);
		return 0;
	}
	Py_DECREF(self->source);
	self->source = source;
	return 1;
}

/* Pull an example from the source. If the source raises an exception, nothing
 * has changed. */
static int pull(struct stage *self, const struct refrain_serving *s)
{
	PyObject *example;
	int rc = note_pull(self, s->example);

	if (rc < 0)
		return rc;
	example = PyIter_Next(self->source);
	if (!example && PyErr_Occurred()) {
		self->failed = true;
		return -1;
	}
	if (!example && self->failed) {
		rc = open_again(self);
		if (rc)
			return rc;
	}
	self->failed = false;
	self->drained = !example;
	if (!example)
		rc = refrain_echo_ended(self->e);
	else if (!s->last)
		rc = window_set(self, s->example, example);
	if (example && rc == 0) {
		rc = refrain_echo_pulled(self->e);
		self->pulled++;
	}
	Py_XDECREF(example);
	if (rc < 0 && !PyErr_Occurred())
		(void)none_or_raise(rc);
	return rc;
}

static PyObject *augmented(struct stage *self, PyObject *example, uint64_t seed)
{
	PyObject *args, *kwargs, *value = NULL;

	if (!self->augment) {
		Py_INCREF(example);
		return example;
	}
	args = Py_BuildValue("(O)", example);
	kwargs = self->seeded
		? Py_BuildValue("{s:K}", "seed", (unsigned long long)seed)
		: NULL;
	if (args && (kwargs || !self->seeded))
		value = PyObject_Call(self->augment, args, kwargs);
	Py_XDECREF(args);
	Py_XDECREF(kwargs);
	return value;
}

static PyObject *serve(struct stage *self, const struct refrain_serving *s)
{
	PyObject *key = PyLong_FromUnsignedLongLong(s->example);
	PyObject *example, *value = NULL;

	if (!key)
		return NULL;
	example = PyDict_GetItemWithError(self->window, key);
	if (example) {
		Py_INCREF(example);
		value = augmented(self, example, s->seed);
		Py_DECREF(example);
	} else if (!PyErr_Occurred()) {
		PyErr_SetString(PyExc_RuntimeError, "an example is missing");
	}
	if (value) {
		/* cannot fail: the stage has asked for this serving */
		(void)refrain_echo_served(self->e);
		if (s->last)
			(void)PyDict_DelItem(self->window, key);
	}
	Py_DECREF(key);
	return value;
}

/* Let the source reach its end. A stage that was resumed behind the last
 * example would not need this. But a source with states must reach its end:
 * otherwise it would continue the old epoch when the next one begins. */
static int drain_source(struct stage *self)
{
	PyObject *example;

	while (self->note && !self->drained) {
		example = PyIter_Next(self->source);
		if (!example && PyErr_Occurred())
			return -1;
		self->drained = !example;
		Py_XDECREF(example);
	}
	return 0;
}

static PyObject *find_serving(struct stage *self)
{
	struct refrain_serving s = {.size = sizeof(s)};
	int rc;

	while ((rc = refrain_echo_next(self->e, &s)) == REFRAIN_ECHO_PULL)
		if (pull(self, &s) < 0)
			return NULL;
	if (rc == REFRAIN_ECHO_SERVE)
		return serve(self, &s);
	if (rc < 0)
		return none_or_raise(rc);
	if (drain_source(self) < 0)
		return NULL;
	self->ended = true;
	Py_CLEAR(self->source);
	Py_CLEAR(self->note);
	return NULL;
}

static PyObject *stage_next(PyObject *object)
{
	struct stage *self = of(object);
	PyObject *value;

	if (!self || self->ended || self->stopped)
		return NULL;
	if (!self->source) {
		value = PyObject_CallMethod(object, "_prepare", NULL);
		if (!value)
			return NULL;
		Py_DECREF(value);
	}
	/* look again, because other threads have run during _prepare() */
	if (!idle(object))
		return NULL;
	self->inside = true;
	value = find_serving(self);
	self->inside = false;
	return value;
}

/* -- Asking ---------------------------------------------------------------- */

static PyObject *stage_needs(PyObject *object, PyObject *unused)
{
	struct stage *self = of(object);

	(void)unused;
	return self ? PyLong_FromUnsignedLongLong(refrain_echo_needs(self->e))
		    : NULL;
}

/* Returns the number of the first example that is stored; if none is, that of
 * the source's next one. */
static PyObject *stage_oldest(PyObject *object, PyObject *unused)
{
	struct stage *self = of(object);
	PyObject *key, *example;
	Py_ssize_t at = 0;

	(void)unused;
	if (!self)
		return NULL;
	if (!PyDict_Next(self->window, &at, &key, &example))
		return PyLong_FromUnsignedLongLong(self->pulled);
	Py_INCREF(key);
	return key;
}

static PyObject *stage_state(PyObject *object, PyObject *unused)
{
	struct stage *self = of(object);
	char state[REFRAIN_STATE_MAX];
	int n;

	(void)unused;
	if (!self)
		return NULL;
	n = refrain_echo_save(self->e, state, sizeof(state));
	return n < 0 ? none_or_raise(n) : PyBytes_FromStringAndSize(state, n);
}

static PyObject *stage_servings(PyObject *object, PyObject *args)
{
	struct stage *self = of(object);
	unsigned long long examples;

	if (!self || !PyArg_ParseTuple(args, "K", &examples))
		return NULL;
	return PyLong_FromUnsignedLongLong(
		refrain_echo_servings(self->e, examples));
}

static PyObject *stage_log(PyObject *object, PyObject *unused)
{
	struct refrain_echo_stats stats = {.size = sizeof(stats)};
	struct stage *self = of(object);
	PyObject *text;
	size_t room;
	char *log;
	int rc;

	(void)unused;
	if (!self)
		return NULL;
	(void)refrain_echo_stats_get(self->e, &stats); /* cannot fail */
	room = (size_t)(stats.echo_changes + 1) * LOG_LINE_BYTES;
	log = PyMem_Malloc(room);
	if (!log)
		return PyErr_NoMemory();
	rc = refrain_echo_changes(self->e, log, room);
	text = rc < 0 ? none_or_raise(rc)
		      : PyUnicode_FromStringAndSize(log, rc);
	PyMem_Free(log);
	return text;
}

static PyObject *stage_stats(PyObject *object, PyObject *unused)
{
	struct refrain_echo_stats s = {.size = sizeof(s)};
	struct stage *self = of(object);

	(void)unused;
	if (!self)
		return NULL;
	(void)refrain_echo_stats_get(self->e, &s); /* cannot fail */
	return Py_BuildValue(
		"{s:K,s:K,s:K,s:K,s:K,s:K,s:d,s:d,s:d,s:K,s:n,s:d,s:K,s:d,s:d,"
		"s:d}",
		"epoch", (unsigned long long)s.epoch, "serving",
		(unsigned long long)s.serving, "fresh",
		(unsigned long long)s.fresh, "served",
		(unsigned long long)s.served, "pulled",
		(unsigned long long)s.pulled, "duplicates",
		(unsigned long long)s.duplicates, "pull_s",
		(double)s.pull_ns / 1e9, "augment_s",
		(double)s.augment_ns / 1e9, "trainer_s",
		(double)s.trainer_ns / 1e9, "window",
		(unsigned long long)s.window, "kept", PyDict_Size(self->window),
		"echo_factor", s.echo_factor, "echo_changes",
		(unsigned long long)s.echo_changes, "t_upstream_ms",
		s.t_upstream_ms, "t_downstream_ms", s.t_downstream_ms, "r",
		s.r);
}

static PyMethodDef stage_methods[] = {
	{"_open", stage_open, METH_VARARGS, "Open at the start or a state."},
	{"_begin", stage_begin, METH_VARARGS, "Begin an epoch."},
	{"_attach", stage_attach, METH_VARARGS, "Take examples from there."},
	{"_needs", stage_needs, METH_NOARGS, "First example to pull again."},
	{"_oldest", stage_oldest, METH_NOARGS, "First example in use."},
	{"_state", stage_state, METH_NOARGS, "The position."},
	{"_servings", stage_servings, METH_VARARGS,
		"Number of servings of this many examples."},
	{"echo_log", stage_log, METH_NOARGS,
		"echo_log()\n--\n\nThe changes of the factor by 'auto' so far, "
		"a str. A stage with this text as\necho_log= serves the same "
		"stream."},
	{"stats", stage_stats, METH_NOARGS,
		"stats()\n--\n\nCounters and times so far, a dict: epoch, "
		"serving (of the epoch), fresh, served,\npulled, duplicates "
		"(in a batch), pull_s, augment_s, trainer_s, window, kept "
		"(examples\nnow), echo_factor, echo_changes, and for 'auto' "
		"t_upstream_ms, t_downstream_ms and r."},
	{NULL, NULL, 0, NULL},
};

/* -- Attributes ------------------------------------------------------------ */

static PyObject *get_ended(PyObject *object, void *unused)
{
	(void)unused;
	return PyBool_FromLong(((struct stage *)object)->ended);
}

static PyObject *get_attached(PyObject *object, void *unused)
{
	(void)unused;
	return PyBool_FromLong(((struct stage *)object)->source != NULL);
}

static PyGetSetDef stage_attributes[] = {
	{"_ended", get_ended, NULL, "The epoch is over.", NULL},
	{"_attached", get_attached, NULL, "In an epoch.", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot stage_slots[] = {
	{Py_tp_doc, "An echo stage of the library; see refrain.Echo."},
	{Py_tp_init, stage_init},
	{Py_tp_dealloc, stage_dealloc},
	{Py_tp_traverse, stage_traverse},
	{Py_tp_clear, stage_clear},
	{Py_tp_iter, PyObject_SelfIter},
	{Py_tp_iternext, stage_next},
	{Py_tp_methods, stage_methods},
	{Py_tp_getset, stage_attributes},
	{0, NULL},
};

PyType_Spec echo_spec = {
	.name = "refrain._refrain.Echo",
	.basicsize = sizeof(struct stage),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
	.slots = stage_slots,
};
