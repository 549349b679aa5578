noinst_LTLIBRARIES += libsettings.la
libsettings_la_SOURCES = \
	src/settings/fetch_rates.h \
	src/settings/member.c src/settings/member.h \
	src/settings/member_text.c \
	src/settings/settings.c src/settings/settings.h
