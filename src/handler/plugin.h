/*
 * handler/plugin.h: shared objects that bring actions: found, checked and loaded here. What they register is the app's
 * business. May include: base.
 */
#ifndef EW_HANDLER_PLUGIN_H
#define EW_HANDLER_PLUGIN_H

#include <everywire/env.h>
#include <everywire/gateway.h>

typedef struct ew__plugin ew__plugin;

/*
 * Loads a shared object and finds its entry. Loading runs code with all the rights of this program, so the file must be
 * one that nobody else can have changed: a regular file of this user's or root's, in a folder of this user's or root's,
 * and neither may be written by group or others. path has a slash: nothing is looked for.
 *
 * EW_OK; EW_EIO: it cannot be, or must not be; EW_ENOMEM. problem gets one line then.
 */
ew_err ew__plugin_load(const ew_env *env, const char *path, ew__plugin **ret, char *problem, size_t size);
ew_plugin_fn ew__plugin_fn(const ew__plugin *plugin);
/* Its code goes: nothing of it may be called, or pointed to, any more. NULL is fine. */
void ew__plugin_unload(ew__plugin *plugin);

#endif
