noinst_LTLIBRARIES += libmodel.la
libmodel_la_SOURCES = src/model/model.c src/model/model.h
libmodel_la_LIBADD = -lm
