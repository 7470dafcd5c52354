; Installer for Windows, for one user, without administrator rights. windows_setup.py builds it:
; makensis -DVERSION -DNUMBERS (four numbers) -DFOLDER (payload) -DFILES (list of the payload) -DPYTHON -DPICTURE -DOUT

Target amd64-unicode
!include MUI2.nsh
!include LogicLib.nsh
!include WinVer.nsh

!define APP "Sprite Training Studio"
!define KEY "Software\Microsoft\Windows\CurrentVersion\Uninstall\SpriteTrainingStudio"
!define SHORTCUT "$SMPROGRAMS\${APP}.lnk"

Name "${APP}"
BrandingText "${APP} ${VERSION}"
OutFile "${OUT}"
InstallDir "$LOCALAPPDATA\Programs\${APP}"
InstallDirRegKey HKCU "${KEY}" InstallLocation
RequestExecutionLevel user
ManifestDPIAware true
ManifestLongPathAware true
SetCompressor /SOLID lzma
SetDateSave off  ; the same bytes for the same commit
ShowInstDetails show
VIProductVersion "${NUMBERS}"
VIAddVersionKey ProductName "${APP}"
VIAddVersionKey FileDescription "${APP}"
VIAddVersionKey FileVersion "${VERSION}"
VIAddVersionKey ProductVersion "${VERSION}"
VIAddVersionKey LegalCopyright "MIT licence"

!define MUI_ICON "${FOLDER}\app.ico"
!define MUI_UNICON "${FOLDER}\app.ico"
!define MUI_WELCOMEFINISHPAGE_BITMAP "${PICTURE}"
!define MUI_ABORTWARNING
!define MUI_DIRECTORYPAGE_TEXT_TOP "The installer fetches Python ${PYTHON} (about 30 MB). The first start then asks before it fetches PyTorch, from half a gigabyte to several gigabytes. Nothing needs administrator rights."
!define MUI_FINISHPAGE_RUN
!define MUI_FINISHPAGE_RUN_TEXT "Start ${APP}"
!define MUI_FINISHPAGE_RUN_FUNCTION StartStudio
!insertmacro MUI_PAGE_DIRECTORY
!insertmacro MUI_PAGE_INSTFILES
!insertmacro MUI_PAGE_FINISH
!insertmacro MUI_UNPAGE_CONFIRM
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE English

Var Python  ; folder of python.exe and pythonw.exe, or ''
Var PythonName  ; name of this folder: ASCII, whatever the user's name

; FindPython: set $Python to the folder of the fetched Python, or to ''.
!macro FindPython un
Function ${un}FindPython
  StrCpy $Python ""
  FindFirst $0 $1 "$INSTDIR\python\cpython-${PYTHON}*"
  ${DoWhile} $1 != ""
    ${If} ${FileExists} "$INSTDIR\python\$1\pythonw.exe"
      StrCpy $PythonName $1
      StrCpy $Python "$INSTDIR\python\$1"
    ${EndIf}
    FindNext $0 $1
  ${Loop}
  FindClose $0
FunctionEnd
!macroend
!insertmacro FindPython ""
!insertmacro FindPython "un."

; StopIfRunning: a folder of a running program can't be renamed.
!macro StopIfRunning un
Function ${un}StopIfRunning
  ${If} ${FileExists} "$INSTDIR\python\*.*"
    ${Do}
      ClearErrors
      Rename "$INSTDIR\python" "$INSTDIR\python-unused"
      ${IfNot} ${Errors}
        Rename "$INSTDIR\python-unused" "$INSTDIR\python"
        ${Break}
      ${EndIf}
      MessageBox MB_RETRYCANCEL|MB_ICONEXCLAMATION "${APP} is running. Close it, then try again." /SD IDCANCEL IDRETRY +2
      Abort "${APP} is running."
    ${Loop}
  ${EndIf}
FunctionEnd
!macroend
!insertmacro StopIfRunning ""
!insertmacro StopIfRunning "un."

; DeleteProgram: delete only files that this installer wrote; the folder may hold files of the user.
!macro DeleteProgram un
Function ${un}DeleteProgram
  SetOutPath "$TEMP"
  !define DELETE
  !include "${FILES}"
  !undef DELETE
  Delete "$INSTDIR\sprite_training_studio-*.whl"
  Delete "$INSTDIR\studio.cmd"
  Delete "$INSTDIR\uninstall.exe"
  RMDir /r "$INSTDIR\python"
  RMDir /r "$INSTDIR\cache"
  RMDir "$INSTDIR"
  Delete "${SHORTCUT}"
  DeleteRegKey HKCU "${KEY}"
FunctionEnd
!macroend
!insertmacro DeleteProgram ""
!insertmacro DeleteProgram "un."

Function .onInit
  ${IfNot} ${AtLeastWin10}
    MessageBox MB_OK|MB_ICONSTOP "${APP} needs Windows 10 or newer." /SD IDOK
    Abort
  ${EndIf}
FunctionEnd

Function StartStudio
  SetOutPath "$DOCUMENTS"
  Exec '"$Python\pythonw.exe" -I "$INSTDIR\start.pyw"'
FunctionEnd

Function FetchPython
  System::Call 'kernel32::SetEnvironmentVariable(t "UV_PYTHON_INSTALL_DIR", t "$INSTDIR\python")'
  System::Call 'kernel32::SetEnvironmentVariable(t "UV_CACHE_DIR", t "$INSTDIR\cache")'
  System::Call 'kernel32::SetEnvironmentVariable(t "UV_NO_CONFIG", t "1")'
  System::Call 'kernel32::SetEnvironmentVariable(t "UV_SYSTEM_CERTS", t "1")'
  DetailPrint "Fetching Python ${PYTHON}"
  ${Do}
    nsExec::ExecToStack /OEM '"$INSTDIR\uv.exe" python install --no-progress --no-bin --no-registry ${PYTHON}'
    Pop $2
    Pop $3
    DetailPrint "$3"
    Call FindPython
    ${If} $2 == 0
    ${AndIf} $Python != ""
      RMDir /r "$INSTDIR\cache"
      Return
    ${EndIf}
    MessageBox MB_RETRYCANCEL|MB_ICONEXCLAMATION "Python could not be fetched. Check the network; behind a proxy, set HTTPS_PROXY.$\r$\n$\r$\nuv ended with code $2. $3" /SD IDCANCEL IDRETRY +2
    ${Break}
  ${Loop}
FunctionEnd

Section
  AddSize 120000  ; KB of Python
  Call StopIfRunning
  SetOutPath "$INSTDIR"
  Delete "$INSTDIR\sprite_training_studio-*.whl"
  !include "${FILES}"
  Call FindPython
  ${If} $Python == ""
    Call FetchPython
  ${EndIf}
  ${If} $Python == ""
    Call DeleteProgram
    SetErrorLevel 1
    Abort "Python could not be fetched. Nothing was installed."
  ${EndIf}
  FileOpen $0 "$INSTDIR\studio.cmd" w  ; for terminals; %~dp0 is the folder of this file
  FileWrite $0 '@"%~dp0python\$PythonName\python.exe" -I "%~dp0start.pyw" %*$\r$\n'
  FileClose $0
  WriteUninstaller "$INSTDIR\uninstall.exe"
  SetOutPath "$DOCUMENTS"  ; where the studio starts
  CreateShortcut "${SHORTCUT}" "$Python\pythonw.exe" '-I "$INSTDIR\start.pyw"' "$INSTDIR\app.ico"
  WriteRegStr HKCU "${KEY}" DisplayName "${APP}"
  WriteRegStr HKCU "${KEY}" DisplayVersion "${VERSION}"
  WriteRegStr HKCU "${KEY}" DisplayIcon "$INSTDIR\app.ico"
  WriteRegStr HKCU "${KEY}" Publisher "${APP} developers"
  WriteRegStr HKCU "${KEY}" InstallLocation "$INSTDIR"
  WriteRegStr HKCU "${KEY}" ModifyPath '"$Python\pythonw.exe" -I "$INSTDIR\start.pyw" --setup'
  WriteRegStr HKCU "${KEY}" UninstallString '"$INSTDIR\uninstall.exe"'
  WriteRegStr HKCU "${KEY}" QuietUninstallString '"$INSTDIR\uninstall.exe" /S'
  WriteRegDWORD HKCU "${KEY}" NoRepair 1
SectionEnd

Section Uninstall
  Call un.StopIfRunning
  Call un.FindPython
  MessageBox MB_YESNO|MB_ICONQUESTION "Delete PyTorch and the caches in $LOCALAPPDATA\${APP}\program? Your runs and settings stay." /SD IDYES IDNO keep
    ; Python deletes long paths, which Windows' own functions refuse.
    nsExec::ExecToLog '"$Python\python.exe" -I "$INSTDIR\start.pyw" --uninstall --yes'
    Pop $0
    RMDir /r "$LOCALAPPDATA\${APP}\program"
    RMDir "$LOCALAPPDATA\${APP}"  ; only if empty
  keep:
  Call un.DeleteProgram
SectionEnd
