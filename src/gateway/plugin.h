/*
 * gateway/plugin.h: the plug-ins of an app: the end of those that ew_app_plugin has loaded.
 */
#ifndef EW_GATEWAY_PLUGIN_H
#define EW_GATEWAY_PLUGIN_H

#include "handler/plugin.h"

#define EW__PLUGINS_MAX 64

/* Of one app, in the order in which they were loaded. */
typedef struct ew__app_plugins {
    ew__plugin *all[EW__PLUGINS_MAX];
    size_t n;
} ew__app_plugins;

/* Their code goes. When nothing of the app is left that could call it. */
void ew__app_plugins_unload(ew__app_plugins *plugins);

#endif
