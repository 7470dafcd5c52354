; Stands in for uv.exe, which makes a Python, and for this Python, which writes its command line into a file.
Unicode true
Target amd64-unicode
!include LogicLib.nsh
!include FileFunc.nsh
Name "stand-in"
OutFile "${OUT}"
RequestExecutionLevel user
SilentInstall silent
Section
  ReadEnvStr $0 STAND_IN_LOG
  FileOpen $1 "$0" a
  FileSeek $1 0 END
  FileWriteUTF16LE $1 "$CMDLINE$\r$\n"
  FileClose $1
  ${If} $EXEFILE == "uv.exe"
    ReadEnvStr $0 STAND_IN_FAILS
    ${If} $0 != ""
      System::Call 'kernel32::GetStdHandle(i -11) p .r1'
      System::Call 'kernel32::WriteFile(p r1, m "error: dns error", i 16, *i .r2, p 0)'
      SetErrorLevel 2
      Quit
    ${EndIf}
    ReadEnvStr $0 UV_PYTHON_INSTALL_DIR
    CreateDirectory "$0\cpython-3.13.9-windows-x86_64-none"
    CopyFiles /SILENT "$EXEPATH" "$0\cpython-3.13.9-windows-x86_64-none\python.exe"
    CopyFiles /SILENT "$EXEPATH" "$0\cpython-3.13.9-windows-x86_64-none\pythonw.exe"
  ${EndIf}
SectionEnd
