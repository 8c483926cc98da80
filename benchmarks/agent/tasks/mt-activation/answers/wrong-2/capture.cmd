mkdir C:\CLRLoadLogs
set COR_CLRLoadLog=C:\CLRLoadLogs
mt.exe -nologo
set COR_CLRLoadLog=
