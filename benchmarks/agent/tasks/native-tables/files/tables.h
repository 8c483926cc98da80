/* tables.h */
typedef struct tbl_handle tbl_handle;
tbl_handle* tbl_open(const char* path_utf8, bool strict);   /* C99 bool */
long        tbl_count_rows(tbl_handle* h, size_t max);
void        tbl_close(tbl_handle* h);
