set COMPLUS_CLRLoadLogDir=C:\CLRLoadLogs
mt.exe -nologo
set COMPLUS_CLRLoadLogDir=
