/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl, loaded at the first call of one of its functions. With its OpenSSL, Kerberos and LDAP it takes 3 MB of memory as
 * soon as it is mapped, and most processes send nothing. Include this instead of <curl/curl.h>, and call its functions as
 * usual.
 */
#ifndef HEARTH_BASE_CURL_H
#define HEARTH_BASE_CURL_H

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

/* Returns the function of this name. If libcurl or the function is missing, it says so and ends the process. Any thread. */
void *curl_function(const char *name);

#define CURL_CALL(name) ((__typeof__(&(name)))curl_function(#name))

#undef curl_easy_setopt
#undef curl_easy_getinfo
#define curl_easy_cleanup(...)	      CURL_CALL(curl_easy_cleanup)(__VA_ARGS__)
#define curl_easy_getinfo(...)	      CURL_CALL(curl_easy_getinfo)(__VA_ARGS__)
#define curl_easy_header(...)	      CURL_CALL(curl_easy_header)(__VA_ARGS__)
#define curl_easy_init(...)	      CURL_CALL(curl_easy_init)(__VA_ARGS__)
#define curl_easy_perform(...)	      CURL_CALL(curl_easy_perform)(__VA_ARGS__)
#define curl_easy_setopt(...)	      CURL_CALL(curl_easy_setopt)(__VA_ARGS__)
#define curl_easy_strerror(...)	      CURL_CALL(curl_easy_strerror)(__VA_ARGS__)
#define curl_free(...)		      CURL_CALL(curl_free)(__VA_ARGS__)
#define curl_global_cleanup(...)      CURL_CALL(curl_global_cleanup)(__VA_ARGS__)
#define curl_global_init(...)	      CURL_CALL(curl_global_init)(__VA_ARGS__)
#define curl_multi_add_handle(...)    CURL_CALL(curl_multi_add_handle)(__VA_ARGS__)
#define curl_multi_cleanup(...)	      CURL_CALL(curl_multi_cleanup)(__VA_ARGS__)
#define curl_multi_info_read(...)     CURL_CALL(curl_multi_info_read)(__VA_ARGS__)
#define curl_multi_init(...)	      CURL_CALL(curl_multi_init)(__VA_ARGS__)
#define curl_multi_perform(...)	      CURL_CALL(curl_multi_perform)(__VA_ARGS__)
#define curl_multi_poll(...)	      CURL_CALL(curl_multi_poll)(__VA_ARGS__)
#define curl_multi_remove_handle(...) CURL_CALL(curl_multi_remove_handle)(__VA_ARGS__)
#define curl_multi_wakeup(...)	      CURL_CALL(curl_multi_wakeup)(__VA_ARGS__)
#define curl_slist_append(...)	      CURL_CALL(curl_slist_append)(__VA_ARGS__)
#define curl_slist_free_all(...)      CURL_CALL(curl_slist_free_all)(__VA_ARGS__)
#define curl_url(...)		      CURL_CALL(curl_url)(__VA_ARGS__)
#define curl_url_cleanup(...)	      CURL_CALL(curl_url_cleanup)(__VA_ARGS__)
#define curl_url_get(...)	      CURL_CALL(curl_url_get)(__VA_ARGS__)
#define curl_url_set(...)	      CURL_CALL(curl_url_set)(__VA_ARGS__)
#define curl_version_info(...)	      CURL_CALL(curl_version_info)(__VA_ARGS__)

#endif
