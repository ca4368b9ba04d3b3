/*
 * client/own_token.h: the token that a client or an app presents to its peers.
 */
#ifndef EW_CLIENT_OWN_TOKEN_H
#define EW_CLIENT_OWN_TOKEN_H

#define EW__OWN_TOKEN_SIZE 256

/*
 * text: the token, or "@FILE" for the first line of a file. Returns NULL, with the token in `out`, or a constant line that
 * says why there is no token. Reads a file. Any thread.
 */
const char *ew__token_read(const char *text, char out[EW__OWN_TOKEN_SIZE]);

#endif
